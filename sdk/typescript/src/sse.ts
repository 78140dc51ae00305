import { ForgeHTTPError } from "./errors.ts";
import { objectOf, parseJson } from "./retry-policy.ts";

/** The longest line, and the longest data of an event, in characters. */
const MAX_EVENT = 16 * 1024 * 1024;

/** A raw event of a stream. */
export interface ServerSentEvent {
  event: string;
  data: string;
  id?: string | undefined;
}

/** Parses the data. Throws ForgeHTTPError if it is not a JSON object. */
export function dataOf({ event, data }: ServerSentEvent): Record<string, unknown> {
  const object = objectOf(parseJson(data));
  if (object) return object;
  throw new ForgeHTTPError(`the data of an event ${JSON.stringify(event)} is not a JSON object`);
}

/** Decodes events by the WHATWG rules. Lines end with \r, \n or both. */
export class EventDecoder {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #event = "";
  #data: string[] = [];
  #dataSize = 0;
  #id: string | undefined;

  *feed(chunk: Uint8Array): Generator<ServerSentEvent, void, undefined> {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    // A \r at the end may be the first half of \r\n, so keep it until the next chunk.
    const held = text.endsWith("\r") ? "\r" : "";
    const lines = text.slice(0, text.length - held.length).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() + held;
    if (this.#rest.length > MAX_EVENT) {
      throw new ForgeHTTPError("a line of an event stream is too long");
    }
    for (const line of lines) {
      const event = this.#take(line);
      if (event) yield event;
    }
  }

  #take(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#end();
    const [, name = line, value = ""] = /^([^:]*): ?(.*)$/s.exec(line) ?? [];
    if (name === "event") this.#event = value;
    else if (name === "data") this.#add(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #add(value: string): void {
    this.#dataSize += value.length + 1;
    if (this.#dataSize > MAX_EVENT) {
      throw new ForgeHTTPError("an event of an event stream is too long");
    }
    this.#data.push(value);
  }

  #end(): ServerSentEvent | undefined {
    const [data, event, id] = [this.#data, this.#event || "message", this.#id];
    this.#data = [];
    this.#dataSize = 0;
    this.#event = "";
    this.#id = undefined;
    return data.length > 0 ? { event, data: data.join("\n"), id } : undefined;
  }
}
