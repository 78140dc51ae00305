import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { SshRefused } from "./refused";

/** Never connected to unless the operator allows it by name: this machine, its link, and what is no host. */
const NEVER_BY_DEFAULT = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/3",
  "::/127",
  "fe80::/10",
  "ff00::/8",
];

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

/** Which addresses may be connected to: those of the allow-list, or, without one, all but the dangerous. */
export class AddressPolicy {
  private readonly allowed: BlockList | undefined;
  private readonly refused = parseNetworks(NEVER_BY_DEFAULT);

  /** @param networks the allow-list, in CIDR notation; none: the default. */
  constructor(networks: string[]) {
    this.allowed = networks.length > 0 ? parseNetworks(networks) : undefined;
  }

  allows(address: string): boolean {
    // An IPv4 address in IPv6 clothes is judged as what it is.
    const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    const family = familyOf(bare);
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
    // Which these are is for whoever runs the name server to know.
    throw new SshRefused(`the operator does not allow connections to ${host}`);
  }
}
