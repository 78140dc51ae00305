import { Listing, type ListRequest } from "../listing.ts";
import type { Transport } from "../transport.ts";

/** A part of a client, e.g. `client.workers`. */
export abstract class Resource {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }

  protected listing<T>(request: ListRequest<T>): Listing<T> {
    return new Listing(this.transport, request);
  }
}
