import { connect, createServer, type Socket } from "node:net";
import { addressOf, listen } from "./local-server";

/**
 * What becomes of one request on its way through.
 * - `cut before`: the connection ends, and the server never hears of it.
 * - `cut after`: the server has done it, and its answer is lost.
 * - `cut in body`: the answer breaks off after its head.
 * - `reset`: as `cut after`, by TCP's reset.
 * - `slow`: the answer comes in pieces of a few bytes.
 * - `silent`: the server has done it, and nothing is ever heard of it.
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

/** TCP between a client and a server; it knows nothing of HTTP but where a head ends. */
export class FaultyProxy {
  /** One after another, each for one request. */
  readonly ahead: Fault[] = [];
  /** Those that were done to a request. */
  readonly done: Fault[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((client) => this.carry(client));

  /** @param target - asked for anew with each connection: a server that is started again has another. */
  private constructor(private readonly target: () => string) {}

  static async start(target: () => string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    await listen(proxy.server);
    return proxy;
  }

  get url(): string {
    return addressOf(this.server);
  }

  /** How many clients are connected. */
  get connections(): number {
    return this.sockets.size / 2;
  }

  /** Every connection that there is, now. */
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
      // What comes after an answer is the next request; until then it is the rest of this one.
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
      // The others end the connection with the first piece.
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
