import { connect, createServer, type Socket } from "node:net";
import { addressOf, listen } from "./local-server";

/**
 * What happens to a request in the proxy.
 * - `cut before`: the connection ends, and the server gets no request.
 * - `cut after`: the server handles the request, and the connection ends without a response.
 * - `cut in body`: the connection ends after the first byte of the response's body.
 * - `reset`: the server handles the request, and a TCP reset replaces the response.
 * - `slow`: the response arrives in pieces of a few bytes.
 * - `silent`: the server handles the request, and the connection stays open without a response.
 */
export const FAULTS = [
  "cut before",
  "cut after",
  "cut in body",
  "reset",
  "slow",
  "silent",
] as const;
export type Fault = (typeof FAULTS)[number];

/**
 * A TCP proxy between a client and a server. It does not parse HTTP. Only for `cut in body`, it
 * looks for the end of the response's head.
 */
export class FaultyProxy {
  /** Upcoming faults, each for one request. */
  readonly ahead: Fault[] = [];
  /** Faults that were applied to a request. */
  readonly done: Fault[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((client) => this.carry(client));

  /**
   * @param target returns the server's URL. Called for each connection, because a restarted server
   *   has another address.
   */
  private constructor(private readonly target: () => string) {}

  static async start(target: () => string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    await listen(proxy.server);
    return proxy;
  }

  get url(): string {
    return addressOf(this.server);
  }

  /** The number of connected clients. */
  get connections(): number {
    return this.sockets.size / 2;
  }

  /** Cuts every current connection. */
  cutAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private carry(client: Socket): void {
    const { hostname, port } = new URL(this.target());
    const server = connect(Number(port), hostname);
    let fault: Fault | undefined;
    let isAnswering = true;
    let sending = Promise.resolve();
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
    client.on("data", (chunk) => {
      // The first data after a response starts the next request. Until a response arrives, all data
      // belongs to the current request.
      if (isAnswering) {
        isAnswering = false;
        fault = this.ahead.shift();
        if (fault) this.done.push(fault);
      }
      if (fault === "cut before") client.destroy();
      else server.write(chunk);
    });
    server.on("data", (chunk) => {
      isAnswering = true;
      const by = fault;
      sending = sending.then(() => answer(client, chunk, by));
      // `slow` and `silent` apply to every piece of the response. Any other fault applies only to
      // the first piece, because it ends the connection.
      if (fault !== "slow" && fault !== "silent") fault = undefined;
    });
  }
}

async function answer(client: Socket, chunk: Buffer, fault: Fault | undefined): Promise<void> {
  if (fault === "silent") return;
  if (fault === "cut after") client.destroy();
  else if (fault === "reset") client.resetAndDestroy();
  else if (fault === "cut in body") {
    const body = chunk.indexOf("\r\n\r\n") + 4;
    client.write(chunk.subarray(0, body + 1), () => client.destroy());
  } else if (fault === "slow") await dribble(client, chunk);
  else client.write(chunk);
}

async function dribble(client: Socket, chunk: Buffer): Promise<void> {
  const size = Math.ceil(chunk.length / 40);
  for (let at = 0; at < chunk.length && !client.destroyed; at += size) {
    client.write(chunk.subarray(at, at + size));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
