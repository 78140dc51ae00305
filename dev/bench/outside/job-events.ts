import { type ClientRequest, get, type IncomingMessage } from "node:http";

/** The fields of a job's event that the benchmark reads. */
interface JobEvent {
  job_id: string;
  status: string;
}

/** Follows `GET /api/events`, which reports the ends of many jobs without polling each one. */
export class JobEvents {
  private constructor(private readonly request: ClientRequest) {}

  /** Resolves when the stream is ready: from then on it reports every change. */
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
