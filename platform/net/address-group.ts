import { isIPv6 } from "node:net";
import { plainAddress } from "./address-policy";

/**
 * The addresses that are counted as one client's: an address of IPv4; of IPv6 the network of 64 bits, because
 * whoever has one address of it has them all.
 *
 * @param given as a socket tells it.
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
