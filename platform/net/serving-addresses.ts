import { isIP } from "node:net";
import { AddressPolicy, LOCAL, NOT_PUBLIC, plainAddress } from "./address-policy";

/** IPv4 addresses written as IPv6. */
const TRANSLATED = ["::/96", "64:ff9b::/96", "2001::/32", "2002::/16"];

export interface PortRange {
  first: number;
  last: number;
}

/** Which server a worker named for a deployed model, and what is known of that worker. */
export interface NamedServer {
  url: URL;
  /** Where the worker's own requests come from. */
  workerAddress: string | null;
  /** Hosts that the worker's owner has named. */
  hosts: string[];
}

/**
 * Where deployed models may be reached. Their address is the word of a tenant's worker, so everything is
 * refused but that worker's own address, and hosts that its owner has named and that are public or allowed
 * by the operator. Never, unless the operator allows it: this machine and its link.
 */
export class ServingAddresses {
  private readonly nearby: AddressPolicy;
  private readonly named: AddressPolicy;

  /**
   * @param allowed networks that the operator allows, in CIDR notation.
   * @param thisMachine all addresses of the machine that this runs on.
   */
  constructor(
    private readonly ports: PortRange[],
    allowed: string[],
    thisMachine: string[],
  ) {
    const never = [...TRANSLATED, ...thisMachine];
    this.nearby = new AddressPolicy([], [...LOCAL, ...never], allowed);
    this.named = new AddressPolicy([], [...NOT_PUBLIC, ...never], allowed);
  }

  /** The policy that a connection to this server is made under; a text says why there is none. */
  policyFor({ url, workerAddress, hosts }: NamedServer): AddressPolicy | string {
    const host = hostOf(url);
    const port = portOf(url);
    if (!this.ports.some(({ first, last }) => first <= port && port <= last)) {
      return `port ${port} is not one that models may be served on (FORGE_DEPLOYMENT_PORTS)`;
    }
    if (hosts.some((named) => sameHost(named, host))) return this.named;
    const isItsOwn = workerAddress !== null && this.nearby.allows(workerAddress);
    // A name may still lead there: that is known when it is resolved.
    const leadsElsewhere = isIP(host) !== 0 && plainAddress(host) !== workerAddress;
    if (isItsOwn && !leadsElsewhere) return new AddressPolicy([workerAddress]);
    return (
      `${host} is neither where the worker's requests come from nor a host that its key names ` +
      "(serving_hosts)"
    );
  }
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);

const sameHost = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** `443,8000-8999`; undefined: that is no list of ports. */
export function readPorts(text: string): PortRange[] | undefined {
  const ranges = text.split(",").map((range) => {
    const match = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(range);
    const first = Number(match?.[1] ?? Number.NaN);
    return { first, last: Number(match?.[2] ?? first) };
  });
  return ranges.every(({ first, last }) => first >= 1 && first <= last && last <= 65_535)
    ? ranges
    : undefined;
}
