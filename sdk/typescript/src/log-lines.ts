import { dataOf, type ServerSentEvent } from "./sse.ts";

/** Lines out of a log that comes in pieces. */
export class LogLines {
  #rest = "";
  isOver = false;

  /** The lines that an event ends, without their end. Throws ForgeHTTPError. */
  *take(event: ServerSentEvent): Generator<string, void, undefined> {
    if (event.event === "end") this.isOver = true;
    if (event.event !== "log") return;
    const { offset, text } = dataOf(event);
    if (offset === 0) yield* this.rest(); // another attempt's log begins
    const lines = (this.#rest + String(text ?? "")).split("\n");
    this.#rest = lines.pop() ?? "";
    yield* lines;
  }

  /** What had no end of a line. */
  *rest(): Generator<string, void, undefined> {
    if (this.#rest) yield this.#rest;
    this.#rest = "";
  }
}
