import { isIP } from "node:net";
import { AddressPolicy, LOCAL, NOT_PUBLIC, plainAddress } from "./address-policy";

/**
 * IPv6 networks whose addresses embed an IPv4 address. These networks are refused, because the
 * embedded address may be a refused one.
 */
const TRANSLATED = ["::/96", "64:ff9b::/96", "2001::/32", "2002::/16"];

export interface PortRange {
  first: number;
  last: number;
}

/** The server that a worker reported for a deployed model, and what is known about the worker. */
export interface NamedServer {
  url: URL;
  /** The source address of the worker's own requests. */
  workerAddress: string | null;
  /** The list `serving_hosts` of the worker's API key, and the worker's SSH host. */
  hosts: string[];
}

/**
 * Decides which addresses of deployed models Forge may connect to. A tenant's worker reports the
 * address, so the address can't be trusted. Allows the worker's own address. Allows the worker's
 * SSH host and the hosts in the list `serving_hosts` of the worker's API key, if they are public or
 * the operator allows them. Refuses this machine and its link-local network, unless the operator
 * allows them.
 */
export class ServingAddresses {
  private readonly nearby: AddressPolicy;
  private readonly named: AddressPolicy;

  /**
   * @param allowed networks that the operator allows, in CIDR notation.
   * @param thisMachine all addresses of this machine.
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

  /** The policy for connections to this server, or the reason why the server is refused. */
  policyFor({ url, workerAddress, hosts }: NamedServer): AddressPolicy | string {
    const host = hostOf(url);
    const port = portOf(url);
    if (!this.ports.some(({ first, last }) => first <= port && port <= last)) {
      return `port ${port} is not allowed for models (FORGE_DEPLOYMENT_PORTS)`;
    }
    if (hosts.some((named) => sameHost(named, host))) return this.named;
    const isItsOwn = workerAddress !== null && this.nearby.allows(workerAddress);
    // A host name is checked later, when the returned policy resolves it.
    const leadsElsewhere = isIP(host) !== 0 && plainAddress(host) !== workerAddress;
    if (isItsOwn && !leadsElsewhere) return new AddressPolicy([workerAddress]);
    return (
      `${host} is neither the source address of the worker's requests nor a host that its key names ` +
      "(serving_hosts)"
    );
  }
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "");

const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);

const sameHost = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** Parses a list like `443,8000-8999`; undefined if it is not a list of ports. */
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
