import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Forge } from "../src/client.ts";
import type { ForgeOptions } from "../src/settings.ts";

export const KEY = "forge_user_the-secret-key";

export interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

export interface Answer {
  status?: number;
  body?: string | Buffer;
  headers?: Record<string, string>;
  /** Number of bytes of the body after which the connection breaks. */
  cutAfter?: number;
  /** The connection stays open after the body. */
  staysOpen?: boolean;
}

/** Undefined: the default response. "cut": the connection breaks. "silent": no response. */
export type Script = (asked: Asked) => Answer | "cut" | "silent" | undefined;

/** Serves one artifact, `ds_1`, over real HTTP. A test can replace any response by a `script`. */
export class FakeForge {
  readonly asked: Asked[] = [];
  script: Script = () => undefined;
  knowsRange = true;
  files: Record<string, Buffer> = {
    "raw.jsonl": Buffer.from('{"a": 1}\n'.repeat(1000)),
    "deep/er/b": Buffer.from("two"),
  };
  manifest: object = manifestOf(this.files);
  /** Number of open responses. A response ends when it is complete or the client closes it. */
  open = 0;
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => void this.answer(request, response));
    this.server.on("request", (_, response) => {
      this.open += 1;
      response.once("close", () => {
        this.open -= 1;
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  client(options: ForgeOptions = {}): Forge {
    return new Forge({ apiKey: KEY, baseUrl: this.url, ...options });
  }

  /** Scripts the responses in order. Repeats the last one. */
  play(...answers: ReturnType<Script>[]): void {
    this.script = () => (answers.length > 1 ? answers.shift() : answers[0]);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const asked = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers as Record<string, string>,
      body: Buffer.concat(pieces),
    };
    this.asked.push(asked);
    const answer = this.script(asked) ?? this.ofArtifact(asked);
    if (answer === "silent") return;
    if (answer === "cut") {
      request.socket.destroy();
      return;
    }
    const body = Buffer.from(answer.body ?? "{}");
    const length = answer.staysOpen ? {} : { "Content-Length": String(body.length) };
    response.writeHead(answer.status ?? 200, { ...length, ...answer.headers });
    if (answer.cutAfter === undefined) {
      if (answer.staysOpen) response.write(body);
      else response.end(body);
      return;
    }
    response.write(body.subarray(0, answer.cutAfter), () => request.socket.destroy());
  }

  private ofArtifact({ path, headers }: Asked): Answer {
    if (headers["x-service-api-key"] !== KEY) return refusal(403, "invalid_api_key");
    const rest = path.replace("/api/artifacts/ds_1", "");
    if (rest === "/manifest") return { body: JSON.stringify(this.manifest) };
    const name = decodeURIComponent(rest.replace("/files/", ""));
    const content =
      name === "manifest.json" ? Buffer.from(JSON.stringify(this.manifest)) : this.files[name];
    if (!content) return refusal(404, "file_not_found");
    const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1]);
    if (!this.knowsRange || Number.isNaN(start)) return { body: content };
    if (start >= content.length) return { status: 416, body: "" };
    const span = `bytes ${start}-${content.length - 1}/${content.length}`;
    return { status: 206, body: content.subarray(start), headers: { "Content-Range": span } };
  }
}

export const manifestOf = (files: Record<string, Buffer>): object => ({
  artifact_id: "ds_1",
  files: Object.entries(files).map(([path, content]) => ({
    path,
    size_bytes: content.length,
    sha256: createHash("sha256").update(content).digest("hex"),
  })),
  verified: true,
});

export const json = (content: unknown, status = 200): Answer => ({
  status,
  body: JSON.stringify(content),
});

export function refusal(
  status: number,
  code: string,
  headers: Record<string, string> = {},
): Answer {
  const error = { code, message: "no", param: "x", request_id: "req_1" };
  return { ...json({ error }, status), headers };
}

export const job = (fields: object = {}): Answer =>
  json({ job_id: "job_1", job_type: "audit", status: "pending", completed_at: null, ...fields });
