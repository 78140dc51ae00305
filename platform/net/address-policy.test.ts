import { AddressPolicy, LOCAL, NOT_PUBLIC } from "./address-policy";
import { ConnectionRefused } from "./refused";

test.each([
  ["127.0.0.1", false],
  ["::1", false],
  ["169.254.169.254", false],
  ["::ffff:169.254.169.254", false],
  ["::ffff:7f00:1", false],
  ["0.0.0.0", false],
  ["fe80::1", false],
  ["224.0.0.1", false],
  ["10.0.0.5", true],
  ["203.0.113.7", true],
  ["2001:db8::5", true],
])("without an allow-list, %s: %s", (address, allowed) => {
  expect(new AddressPolicy([]).allows(address)).toBe(allowed);
});

test("an allow-list allows only its networks", () => {
  const policy = new AddressPolicy(["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"]);
  for (const address of ["10.9.8.7", "127.0.0.1", "2001:db8::5", "::ffff:10.1.1.1"]) {
    expect(policy.allows(address)).toBe(true);
  }
  for (const address of ["11.0.0.1", "127.0.0.2", "::1", "2001:db9::1"]) {
    expect(policy.allows(address)).toBe(false);
  }
});

test("additional networks are allowed, and no others", () => {
  const policy = new AddressPolicy([], LOCAL, ["127.0.0.0/8", "::1"]);
  for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1"]) {
    expect(policy.allows(address)).toBe(true);
  }
  for (const address of ["169.254.169.254", "0.0.0.0", "fe80::1", "::ffff:a9fe:a9fe"]) {
    expect(policy.allows(address)).toBe(false);
  }
});

test.each(["10.0.0.0/33", "localhost", "10.0.0.0/", "10.0.0.0/-1"])(
  "%s is not a network",
  (text) => {
    expect(() => new AddressPolicy([text])).toThrow();
  },
);

test("resolve checks the addresses of a name and returns an allowed one", async () => {
  expect(await new AddressPolicy(["127.0.0.0/8"]).resolve("localhost")).toBe("127.0.0.1");
  await expect(new AddressPolicy([]).resolve("localhost")).rejects.toBeInstanceOf(
    ConnectionRefused,
  );
});

test("lookup returns only addresses that are public or allowed", async () => {
  const resolved = (policy: AddressPolicy): Promise<unknown> =>
    new Promise((resolve) => {
      policy.lookup("localhost", { all: true }, (error, found) => resolve(error ?? found));
    });
  expect(await resolved(new AddressPolicy([], NOT_PUBLIC))).toBeInstanceOf(ConnectionRefused);
  expect(await resolved(new AddressPolicy(["127.0.0.1"], NOT_PUBLIC))).toEqual([
    { address: "127.0.0.1", family: 4 },
  ]);
});

test.each([
  "10.0.0.1",
  "100.100.0.1",
  "169.254.169.254",
  "172.31.0.1",
  "192.168.1.1",
  "::1",
  "::ffff:10.0.0.1",
  "64:ff9b::a00:1",
  "fd00::1",
  "2002:a00:1::",
])("%s is not public", (address) => {
  expect(new AddressPolicy([], NOT_PUBLIC).allows(address)).toBe(false);
});
