import type { ApiClient } from "../../dev/api-client";

export interface StreamedEvent {
  id?: string;
  event: string;
  data: Record<string, unknown>;
}

/** Reads a stream of server-sent events as they arrive. */
export class EventStream {
  readonly events: StreamedEvent[] = [];
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  private readonly controller = new AbortController();

  private constructor(
    readonly status: number,
    response: Response,
    controller: AbortController,
  ) {
    this.controller = controller;
    this.ended = this.read(response).catch(() => undefined);
  }

  static async open(api: ApiClient, path: string, lastEventId?: string): Promise<EventStream> {
    const controller = new AbortController();
    const response = await fetch(`${api.baseUrl}${path}`, {
      headers: {
        "x-service-api-key": api.key,
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      signal: controller.signal,
    });
    return new EventStream(response.status, response, controller);
  }

  /** Closes the connection. */
  close(): void {
    this.controller.abort();
  }

  private async read(response: Response): Promise<void> {
    if (!response.body) return;
    let text = "";
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
      text += part;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      this.events.push(...blocks.flatMap(parse));
    }
  }
}

function parse(block: string): StreamedEvent[] {
  const fields = Object.fromEntries(
    block.split("\n").map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at), line.slice(at + 1).trimStart()];
    }),
  );
  if (fields.event === undefined || fields.data === undefined) return [];
  const event = { event: fields.event, data: JSON.parse(fields.data) as StreamedEvent["data"] };
  return [fields.id === undefined ? event : { id: fields.id, ...event }];
}
