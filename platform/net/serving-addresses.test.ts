import { AddressPolicy } from "./address-policy";
import { readPorts, ServingAddresses } from "./serving-addresses";

const PORTS = [{ first: 1024, last: 65_535 }];

/** Whether requests to a model at this URL are allowed. */
function allows(
  url: string,
  {
    from = "203.0.113.7",
    hosts = [],
    allowed = [],
  }: { from?: string | null; hosts?: string[]; allowed?: string[] } = {},
): boolean {
  const target = new URL(url);
  const addresses = new ServingAddresses(PORTS, allowed, ["198.51.100.1"]);
  const policy = addresses.policyFor({ url: target, workerAddress: from, hosts });
  return policy instanceof AddressPolicy && policy.allows(target.hostname.replace(/^\[|\]$/g, ""));
}

test.each<[string, Parameters<typeof allows>[1], boolean]>([
  ["http://203.0.113.7:8000/v1", {}, true],
  ["http://203.0.113.8:8000/v1", {}, false],
  ["http://10.0.0.7:8000/v1", { from: "10.0.0.7" }, true],
  ["http://10.0.0.8:8000/v1", { from: "10.0.0.7" }, false],
  ["http://[2001:db8::7]:8000/v1", { from: "2001:db8::7" }, true],
  ["http://[::ffff:203.0.113.7]:8000/v1", {}, false],
  ["http://169.254.169.254:8000/latest/meta-data", {}, false],
  ["http://[fe80::1]:8000/v1", {}, false],
  ["http://[fd00::1]:8000/v1", {}, false],
  ["http://203.0.113.7:8000/v1", { from: null }, false],
  // The worker's own requests seem to come from this machine, for example because a proxy reports a
  // wrong address. This machine is refused nevertheless, unless the operator allows it.
  ["http://127.0.0.1:8000/v1", { from: "127.0.0.1" }, false],
  ["http://198.51.100.1:8000/v1", { from: "198.51.100.1" }, false],
  ["http://127.0.0.1:8000/v1", { from: "127.0.0.1", allowed: ["127.0.0.0/8"] }, true],
  ["http://127.0.0.2:8000/v1", { from: "127.0.0.1", allowed: ["127.0.0.0/8"] }, false],
  // A host in the API key's `serving_hosts` must be public, or in a network that the operator
  // allows.
  ["http://192.0.2.9:8000/v1", { hosts: ["192.0.2.9"] }, true],
  ["http://10.0.0.9:8000/v1", { hosts: ["10.0.0.9"] }, false],
  ["http://10.0.0.9:8000/v1", { hosts: ["10.0.0.9"], allowed: ["10.0.0.0/8"] }, true],
  ["http://10.0.0.9:8000/v1", { allowed: ["10.0.0.0/8"] }, false],
  ["http://169.254.169.254:8000/v1", { hosts: ["169.254.169.254"] }, false],
  // A port that the operator does not allow is refused, because another service may use it.
  ["http://203.0.113.7:22/v1", {}, false],
  ["http://203.0.113.7/v1", {}, false],
  ["https://203.0.113.7/v1", {}, false],
])("%s %j: %s", (url, given, expected) => {
  expect(allows(url, given)).toBe(expected);
});

test("a host name must resolve to the worker's address", async () => {
  const addresses = new ServingAddresses(PORTS, ["127.0.0.0/8"], []);
  const policyOf = (workerAddress: string) => {
    const url = new URL("http://localhost:8000/v1");
    const policy = addresses.policyFor({ url, workerAddress, hosts: [] });
    if (typeof policy === "string") throw new Error(policy);
    return policy;
  };
  expect(await policyOf("127.0.0.1").resolve("localhost")).toBe("127.0.0.1");
  await expect(policyOf("127.0.0.2").resolve("localhost")).rejects.toThrow("localhost");
});

test("ports", () => {
  expect(readPorts("443, 8000-8999")).toEqual([
    { first: 443, last: 443 },
    { first: 8000, last: 8999 },
  ]);
  for (const text of ["", "0", "9-1", "80-", "1-65536", "http", "1,,2"]) {
    expect(readPorts(text)).toBeUndefined();
  }
});
