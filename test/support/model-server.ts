import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { lingerOnClose } from "../../platform/http/lingering-close";
import { addressOf, close, listen } from "./local-server";

export type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** A minimal model server. It answers with its name, unless a test sets another handler. */
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
    // If the server answers before it has read the whole request and then closes the connection at
    // once, the response could be lost.
    lingerOnClose(this.server);
  }

  static async start(name: string): Promise<ModelServer> {
    const model = new ModelServer(name);
    await listen(model.server);
    return model;
  }

  get url(): string {
    return `${addressOf(this.server)}/v1`;
  }

  async stop(): Promise<void> {
    await close(this.server);
  }
}
