import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ConnectionRefused } from "./refused";

/** Loopback, link-local, multicast and unspecified addresses: refused by default. */
export const LOCAL = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/3",
  "::/127",
  "fe80::/10",
  "ff00::/8",
];

/** LOCAL, private networks, and the IPv6 networks that can embed private IPv4 addresses. */
export const NOT_PUBLIC = [
  ...LOCAL,
  "10.0.0.0/8",
  "100.64.0.0/10",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "64:ff9b::/96",
  "2001::/32",
  "2002::/16",
  "fc00::/7",
];

/** Converts an IPv4-mapped IPv6 address in dotted form (`::ffff:10.0.0.1`) to IPv4. */
export const plainAddress = (address: string): string =>
  /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** Parses CIDR notation; an address without a prefix is a network of one address. */
function parseNetworks(networks: string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    if (isIP(address) === 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix))) {
      throw new Error(`"${network}" is not an address or a network like 10.0.0.0/8`);
    }
    list.addSubnet(address, Number(prefix ?? (isIP(address) === 6 ? 128 : 32)), familyOf(address));
  }
  return list;
}

/** The error for a host without an allowed address. It does not reveal the host's addresses. */
const refused = (host: string): ConnectionRefused =>
  new ConnectionRefused(`the operator does not allow connections to ${host}`);

/** Allows the addresses of an allow-list; without a list, all addresses except refused ones. */
export class AddressPolicy {
  private readonly allowed: BlockList | undefined;
  private readonly refused: BlockList;
  private readonly additional: BlockList;

  /**
   * @param networks the allow-list, in CIDR notation; empty: all networks except `refused`.
   * @param additional networks that are always allowed.
   */
  constructor(networks: string[], refused = LOCAL, additional: string[] = []) {
    this.allowed = networks.length > 0 ? parseNetworks(networks) : undefined;
    this.refused = parseNetworks(refused);
    this.additional = parseNetworks(additional);
  }

  allows(address: string): boolean {
    const bare = plainAddress(address);
    const family = familyOf(bare);
    if (this.additional.check(bare, family)) return true;
    return this.allowed ? this.allowed.check(bare, family) : !this.refused.check(bare, family);
  }

  /** Resolves a host to an allowed address. Connect to this address: another lookup may differ. */
  async resolve(host: string): Promise<string> {
    let found: LookupAddress[];
    try {
      found = await lookup(host, { all: true });
    } catch {
      throw new Error(`the name "${host}" can't be resolved`);
    }
    const usable = found.find(({ address }) => this.allows(address));
    if (usable) return usable.address;
    throw refused(host);
  }

  /** A `lookup` function for clients that resolve names. Returns allowed addresses only. */
  readonly lookup: LookupFunction = (host, options, done) => {
    systemLookup(host, { ...options, all: true }, (error, found) => {
      const usable = error ? [] : found.filter(({ address }) => this.allows(address));
      const [first] = usable;
      if (!first) done(error ?? refused(host), "", 4);
      else if (options.all) done(null, usable);
      else done(null, first.address, first.family);
    });
  };
}
