import { AddressPolicy } from "./addresses";
import { SshRefused } from "./refused";

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

test("with one, only what is on it", () => {
  const policy = new AddressPolicy(["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"]);
  for (const address of ["10.9.8.7", "127.0.0.1", "2001:db8::5", "::ffff:10.1.1.1"]) {
    expect(policy.allows(address)).toBe(true);
  }
  for (const address of ["11.0.0.1", "127.0.0.2", "::1", "2001:db9::1"]) {
    expect(policy.allows(address)).toBe(false);
  }
});

test.each(["10.0.0.0/33", "localhost", "10.0.0.0/", "10.0.0.0/-1"])("%s is no network", (text) => {
  expect(() => new AddressPolicy([text])).toThrow();
});

test("a name is judged by what it resolves to, and gives that address", async () => {
  expect(await new AddressPolicy(["127.0.0.0/8"]).resolve("localhost")).toBe("127.0.0.1");
  await expect(new AddressPolicy([]).resolve("localhost")).rejects.toBeInstanceOf(SshRefused);
});
