import { randomUUID } from "node:crypto";
import { createConnection, type Socket } from "node:net";

export interface HttpCall {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  /** Whether each request has an Idempotency-Key of its own, which `withNewKey` sets. */
  isIdempotent?: boolean;
}

export interface HttpAnswer {
  status: number;
  body: string;
}

interface Waiting {
  resolve(answer: HttpAnswer): void;
  reject(error: Error): void;
}

const HEADERS_END = Buffer.from("\r\n\r\n");
/** The Idempotency-Key in requests of `encode`. Has the length of a UUID. */
const KEY_PLACEHOLDER = "-".repeat(36);

/**
 * A keep-alive HTTP/1.1 connection with one request at a time. It reads only the status and a body
 * with a Content-Length, and needs a fifth of the CPU time of node:http. With node:http, the load
 * generator would be the bottleneck instead of the server.
 */
export class HttpConnection {
  private received: Buffer = Buffer.alloc(0);
  private waiting: Waiting | undefined;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.receive(chunk));
    socket.on("error", (error) => this.fail(error));
    socket.on("close", () => this.fail(new Error("the server closed the connection")));
  }

  static async open(url: string): Promise<HttpConnection> {
    const { hostname, port } = new URL(url);
    const socket = createConnection({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new HttpConnection(socket);
  }

  /** Whether a request waits for its answer. */
  get isBusy(): boolean {
    return this.waiting !== undefined;
  }

  /**
   * @param request made by `encode`.
   *
   * @throws Error if another request is waiting, or the connection breaks or is closed.
   */
  async send(request: Buffer): Promise<HttpAnswer> {
    if (this.waiting) throw new Error("a request is waiting on this connection");
    if (this.socket.destroyed) throw new Error("the connection is closed");
    return await new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private fail(error: Error): void {
    this.waiting?.reject(error);
    this.waiting = undefined;
  }

  private receive(chunk: Buffer): void {
    this.received = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk]);
    const headersEnd = this.received.indexOf(HEADERS_END);
    if (headersEnd < 0) return;
    const head = this.received.toString("latin1", 0, headersEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.fail(new Error(`an answer without Content-Length: ${head.split("\r\n", 1)[0]}`));
      this.close();
      return;
    }
    const start = headersEnd + HEADERS_END.length;
    const end = start + Number(length);
    if (this.received.length < end) return;
    const answer = {
      status: Number(head.slice(9, 12)),
      body: this.received.toString("utf8", start, end),
    };
    this.received = this.received.subarray(end);
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.resolve(answer);
  }
}

/** Encodes a request to bytes that can be sent repeatedly. */
export function encode({ method, path, body, isIdempotent }: HttpCall, key: string): Buffer {
  const content = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "host: bench",
    `x-service-api-key: ${key}`,
    ...(isIdempotent ? [`idempotency-key: ${KEY_PLACEHOLDER}`] : []),
    ...(content === ""
      ? []
      : ["content-type: application/json", `content-length: ${Buffer.byteLength(content)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${content}`);
}

/** A copy of an encoded request of an idempotent call, with an Idempotency-Key of its own. */
export function withNewKey(request: Buffer): Buffer {
  const at = request.indexOf(KEY_PLACEHOLDER);
  if (at < 0) throw new Error("the request has no Idempotency-Key");
  const copy = Buffer.from(request);
  copy.write(randomUUID(), at, "latin1");
  return copy;
}

/** The JSON body of an answer. @throws Error if the status is not 2xx. */
export function bodyOf<T>({ status, body }: HttpAnswer): T {
  if (status >= 300) throw new Error(`HTTP ${status} ${body}`);
  return JSON.parse(body) as T;
}
