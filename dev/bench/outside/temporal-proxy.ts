import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";

/** Size in bytes of a gRPC message's header. A response of at most this size has no content. */
const FRAME_HEADER = 5;

/**
 * A gRPC proxy without TLS that counts the calls of a client and its workers to Temporal. A long
 * poll counts only if it returns a task.
 */
export class CountingTemporalProxy {
  private calls: string[] = [];
  private readonly sessions = new Set<ServerHttp2Session>();

  private constructor(
    private readonly server: Http2Server,
    private readonly target: ClientHttp2Session,
  ) {}

  /** @param address the server behind the proxy, host:port. */
  static async start(address: string): Promise<CountingTemporalProxy> {
    const server = createServer();
    const target = connect(`http://${address}`);
    target.on("error", () => undefined);
    const proxy = new CountingTemporalProxy(server, target);
    server.on("session", (session) => {
      proxy.sessions.add(session);
      session.on("close", () => proxy.sessions.delete(session));
    });
    server.on("stream", (stream, headers) => proxy.forward(stream, headers));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The methods called since the last `take`. */
  take(): string[] {
    const { calls } = this;
    this.calls = [];
    return calls;
  }

  stop(): void {
    this.server.close();
    for (const session of this.sessions) session.destroy();
    this.target.destroy();
  }

  private forward(incoming: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const method = String(headers[":path"]).replace(/^.*\//, "");
    const isPoll = method.startsWith("Poll");
    if (!isPoll) this.calls.push(method);
    const outgoing = this.target.request(headers);
    let trailers: IncomingHttpHeaders = {};
    let bytes = 0;
    outgoing.on("response", (answer, flags) => {
      if (incoming.destroyed) return;
      const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      incoming.respond(answer, isWhole ? { endStream: true } : { waitForTrailers: true });
    });
    outgoing.on("trailers", (given) => {
      trailers = given;
    });
    outgoing.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    outgoing.on("end", () => {
      if (isPoll && bytes > FRAME_HEADER) this.calls.push(method);
    });
    incoming.on("wantTrailers", () => incoming.sendTrailers(trailers));
    incoming.pipe(outgoing);
    outgoing.pipe(incoming);
    incoming.on("error", () => outgoing.close());
    incoming.on("close", () => outgoing.close());
    outgoing.on("error", () => incoming.close(constants.NGHTTP2_INTERNAL_ERROR));
  }
}
