import { ForgeError, ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get } from "./request.ts";
import { objectOf } from "./retries.ts";
import type { Transport } from "./transport.ts";

const MAX_PAGE = 200;

export interface ListOptions {
  /** How many entries in all; without it, all that there are. */
  limit?: number | undefined;
  /** How many the API is asked for at once, up to 200. */
  pageSize?: number | undefined;
}

/** A page of a list, as the API gave it. */
export interface Page<T> {
  items: T[];
  has_more: boolean;
  next_cursor: string | null;
}

export interface ListRequest<T> {
  path: string;
  /** Of the field that has the entries. */
  name: string;
  query: ListOptions & object;
  options: RequestOptions | undefined;
  read?: (entry: unknown) => T;
}

/** The objects in a field of an answer. Throws ForgeHTTPError where it has none. */
export function entriesOf(answer: Record<string, unknown>, name: string, path: string): unknown[] {
  const { [name]: entries } = answer;
  if (!Array.isArray(entries)) {
    throw new ForgeHTTPError(`${path}: ${name} in the answer is not a list`);
  }
  if (!entries.every(objectOf)) {
    throw new ForgeHTTPError(`${path}: ${name} in the answer has what is no object`);
  }
  return entries;
}

/** Iterate over it with `for await`: pages are fetched as they are needed; each time anew. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #request: ListRequest<T>;

  constructor(transport: Transport, request: ListRequest<T>) {
    if ((request.query.limit ?? 0) < 0) throw new ForgeError("limit must not be negative");
    this.#transport = transport;
    this.#request = request;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  /** Page by page. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let left = this.#request.query.limit ?? Number.POSITIVE_INFINITY;
    let after: string | undefined;
    while (left > 0) {
      const page = await this.page(after, left);
      const items = page.items.slice(0, left);
      yield { ...page, items };
      left -= items.length;
      if (!page.has_more) return;
      if (page.next_cursor === after) throw new ForgeHTTPError("a page leads to itself");
      after = page.next_cursor ?? undefined;
    }
  }

  /** One page: the first, or the one after a `next_cursor`. */
  async page(after?: string, most = this.#request.query.limit): Promise<Page<T>> {
    const { path, name, query, options, read = (entry) => entry as T } = this.#request;
    const { limit: _limit, pageSize, ...filters } = query;
    const size =
      most === undefined || most === Number.POSITIVE_INFINITY
        ? pageSize
        : Math.min(pageSize ?? MAX_PAGE, most, MAX_PAGE);
    const request = get(path, { ...filters, limit: size, after });
    const answer = await this.#transport.json<Record<string, unknown>>(request, options);
    const entries = entriesOf(answer, name, path);
    const { next_cursor: cursor } = answer;
    const has_more = answer.has_more === true;
    const next_cursor = typeof cursor === "string" && cursor ? cursor : null;
    if (has_more && !next_cursor) {
      throw new ForgeHTTPError(`${path}: the answer has more, and does not say where`);
    }
    return { items: entries.map(read), has_more, next_cursor };
  }

  /** All of them, in memory. */
  async toArray(): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) items.push(item);
    return items;
  }
}
