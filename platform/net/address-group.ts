import { isIPv6 } from "node:net";
import { plainAddress } from "./address-policy";

/**
 * Returns the group of an address that a socket reports. The addresses of a group count as one
 * client. A group is a single IPv4 address, or an IPv6 /64 network, because the owner of one
 * address usually has the whole network.
 */
export function addressGroup(given: string): string {
  const address = plainAddress(given);
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const before = head === "" ? [] : head.split(":");
  const after = tail ? tail.split(":") : [];
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(zeros).fill("0"), ...after];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
