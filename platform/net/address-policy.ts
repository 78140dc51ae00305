import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ConnectionRefused } from "./refused";

/** Not connected to unless the operator allows it by name: this machine, its link, and what is no host. */
export const LOCAL = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/3",
  "::/127",
  "fe80::/10",
  "ff00::/8",
];

/** Those, and private networks, also as addresses of a translation protocol. */
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

/** An IPv4 address that arrived as IPv6 (`::ffff:10.0.0.1`) is the IPv4 address. */
export const plainAddress = (address: string): string =>
  /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** Addresses in CIDR notation; a lone address is a network of one. */
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

/** Which addresses they were is for whoever runs the name server to know. */
const refused = (host: string): ConnectionRefused =>
  new ConnectionRefused(`the operator does not allow connections to ${host}`);

/** Which addresses may be connected to: those of the allow-list, or, without one, all but the dangerous. */
export class AddressPolicy {
  private readonly allowed: BlockList | undefined;
  private readonly refused: BlockList;
  private readonly besides: BlockList;

  /**
   * @param networks the allow-list, in CIDR notation; none: all but those refused.
   * @param besides allowed beside that.
   */
  constructor(networks: string[], refused = LOCAL, besides: string[] = []) {
    this.allowed = networks.length > 0 ? parseNetworks(networks) : undefined;
    this.refused = parseNetworks(refused);
    this.besides = parseNetworks(besides);
  }

  allows(address: string): boolean {
    const bare = plainAddress(address);
    const family = familyOf(bare);
    if (this.besides.check(bare, family)) return true;
    return this.allowed ? this.allowed.check(bare, family) : !this.refused.check(bare, family);
  }

  /**
   * Resolves a host and gives an address that may be connected to. The connection is made to this
   * address, not to the name: a second look-up could give another.
   */
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

  /** The same for a client that resolves names itself: it gets those addresses only. */
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
