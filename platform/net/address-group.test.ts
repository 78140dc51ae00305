import { addressGroup } from "./address-group";

test.each([
  ["10.1.2.3", "10.1.2.3"],
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:0db8:0001:0002::9", "2001:db8:1:2"],
  ["2001:db8::1", "2001:db8:0:0"],
  ["2001:db8:1:2:ffff::", "2001:db8:1:2"],
  ["::1", "0:0:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
])("%s is one of %s", (address, group) => {
  expect(addressGroup(address)).toBe(group);
});
