import { createConnection, type Socket } from "node:net";

export interface HttpCall {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
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

/**
 * One kept-alive HTTP/1.1 connection with one request at a time. It reads only what a benchmark needs
 * (the status and a body with a Content-Length), at a fifth of the CPU time of node:http: with that, the load
 * generator and not the server would be the limit.
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

  /** Sends a request made by `encode`. @throws while another one is waiting, or if the connection breaks. */
  async send(request: Buffer): Promise<HttpAnswer> {
    if (this.waiting) throw new Error("a request is waiting on this connection");
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

/** A request's bytes, to send as often as one likes. */
export function encode({ method, path, body }: HttpCall, key: string): Buffer {
  const content = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "host: bench",
    `x-service-api-key: ${key}`,
    ...(content === ""
      ? []
      : ["content-type: application/json", `content-length: ${Buffer.byteLength(content)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${content}`);
}

/** The body of an answer of status 2xx. @throws for any other. */
export function bodyOf<T>({ status, body }: HttpAnswer): T {
  if (status >= 300) throw new Error(`HTTP ${status} ${body}`);
  return JSON.parse(body) as T;
}
