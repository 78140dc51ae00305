import { type ClientRequest, get, type IncomingMessage } from "node:http";

/** A job's event on the tenant's stream, as far as the benchmark reads it. */
interface JobEvent {
  job_id: string;
  status: string;
}

/** Follows `GET /api/events`: how a client of many jobs learns of their ends without asking for each. */
export class JobEvents {
  private constructor(private readonly request: ClientRequest) {}

  /** Resolves when the stream is ready: it carries every change from now on. */
  static async open(
    url: string,
    key: string,
    onEvent: (event: JobEvent) => void,
  ): Promise<JobEvents> {
    return await new Promise((resolve, reject) => {
      const request = get(
        `${url}/api/events`,
        { headers: { "x-service-api-key": key }, agent: false },
        (response) => {
          readBlocks(response, (event, data) => {
            if (event === "ready") resolve(new JobEvents(request));
            if (event === "job") onEvent(JSON.parse(data) as JobEvent);
          });
        },
      );
      request.on("error", reject);
    });
  }

  close(): void {
    this.request.destroy();
  }
}

function readBlocks(
  response: IncomingMessage,
  onBlock: (event: string | undefined, data: string) => void,
): void {
  let text = "";
  response.setEncoding("utf8");
  response.on("error", () => undefined);
  response.on("data", (chunk: string) => {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      onBlock(/^event: ?(.*)$/m.exec(block)?.[1], /^data: ?(.*)$/m.exec(block)?.[1] ?? "{}");
    }
  });
}
