import { Agent, request } from "node:http";

/** A response of the worker protocol, with the fields that a simulated worker reads. */
export interface Answer {
  status: number;
  body: {
    job_id?: string | null;
    attempt?: number;
    job_type?: string;
    status?: string;
    commands?: { type: string; job_id?: string }[];
    error?: { code: string };
  };
}

/**
 * A low-cost client of the worker endpoints, for a machine that simulates a thousand workers. Each
 * worker has its own HTTP/1.1 connections, like a worker on its own machine.
 */
export class WorkerApi {
  private readonly connections = new Agent({ keepAlive: true, maxSockets: 4 });
  private readonly base: URL;

  constructor(
    apiUrl: string,
    private readonly key: string,
  ) {
    this.base = new URL(apiUrl);
  }

  /** @throws when the connection fails, or `close` ends it. */
  async post(path: string, body: unknown): Promise<Answer> {
    const content = JSON.stringify(body);
    return await new Promise((resolve, reject) => {
      const sent = request(
        {
          agent: this.connections,
          host: this.base.hostname,
          port: this.base.port,
          path,
          method: "POST",
          headers: {
            "x-service-api-key": this.key,
            "content-type": "application/json",
            "content-length": Buffer.byteLength(content),
          },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => {
            text += chunk;
          });
          response.on("error", reject);
          response.on("end", () => {
            try {
              resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
            } catch (error) {
              reject(error);
            }
          });
        },
      );
      sent.on("error", reject);
      sent.end(content);
    });
  }

  /** Closes every connection, even with open requests. */
  close(): void {
    this.connections.destroy();
  }
}
