import { dataOf, type ServerSentEvent } from "./sse.ts";

/** Splits a streamed log into lines. */
export class LogLines {
  #rest = "";
  isOver = false;

  /**
   * Yields the lines that an event completes, without line ends. Throws ForgeHTTPError if the
   * event's data is not a JSON object.
   */
  *take(event: ServerSentEvent): Generator<string, void, undefined> {
    if (event.event === "end") this.isOver = true;
    if (event.event !== "log") return;
    const { offset, text } = dataOf(event);
    if (offset === 0) yield* this.rest(); // another attempt's log begins: end the last line
    const lines = (this.#rest + String(text ?? "")).split("\n");
    this.#rest = lines.pop() ?? "";
    yield* lines;
  }

  /** Yields the last line if it has no line end. */
  *rest(): Generator<string, void, undefined> {
    if (this.#rest) yield this.#rest;
    this.#rest = "";
  }
}
