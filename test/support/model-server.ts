import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** A model's server, small: it answers with its name, unless a test says otherwise. */
export class ModelServer {
  readonly requests: IncomingMessage[] = [];
  answering: Answering = (request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ model: this.name, path: request.url }));
  };
  private readonly server: Server;

  private constructor(readonly name: string) {
    this.server = createServer((request, response) => {
      this.requests.push(request);
      this.answering(request, response);
    });
  }

  static async start(name: string): Promise<ModelServer> {
    const model = new ModelServer(name);
    await new Promise<void>((resolve) => model.server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => void this.server.close(resolve));
  }
}
