import { ForgeError, ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get } from "./request.ts";
import { objectOf } from "./retry-policy.ts";
import type { Transport } from "./transport.ts";

const MAX_PAGE = 200;

export interface ListOptions {
  /** Maximum number of entries in total. Default: all. */
  limit?: number | undefined;
  /** Number of entries per request, up to 200. */
  pageSize?: number | undefined;
}

/** One page of a list. */
export interface Page<T> {
  items: T[];
  has_more: boolean;
  next_cursor: string | null;
}

export interface ListRequest<T> {
  path: string;
  /** Name of the response field with the entries. */
  name: string;
  query: ListOptions & object;
  options: RequestOptions | undefined;
  read?: (entry: unknown) => T;
}

/** Returns the field `name` of a response. Throws ForgeHTTPError if it is not a list of objects. */
export function entriesOf(answer: Record<string, unknown>, name: string, path: string): unknown[] {
  const { [name]: entries } = answer;
  if (!Array.isArray(entries)) {
    throw new ForgeHTTPError(`${path}: ${name} in the response is not a list`);
  }
  if (!entries.every(objectOf)) {
    throw new ForgeHTTPError(`${path}: ${name} in the response has an entry that is not an object`);
  }
  return entries;
}

/** A list for `for await`. Fetches pages on demand. Each iteration starts from the beginning. */
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

  /** Iterates over pages. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let left = this.#request.query.limit ?? Number.POSITIVE_INFINITY;
    let after: string | undefined;
    while (left > 0) {
      const page = await this.page(after, left);
      const items = page.items.slice(0, left);
      yield { ...page, items };
      left -= items.length;
      if (!page.has_more) return;
      if (page.next_cursor === after)
        throw new ForgeHTTPError("a next_cursor leads to the same page");
      after = page.next_cursor ?? undefined;
    }
  }

  /** Reads one page. `after`: the `next_cursor` of the previous page. Default: the first page. */
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
      throw new ForgeHTTPError(`${path}: the response has_more but no next_cursor`);
    }
    return { items: entries.map(read), has_more, next_cursor };
  }

  /** Reads all entries into memory. */
  async toArray(): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) items.push(item);
    return items;
  }
}
