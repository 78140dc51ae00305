import { z } from "zod";
import type { Cursor, Page, WithPosition } from "../postgres/pages";

const MAX_LIMIT = 200;
const DEFAULT_LIMIT = 50;
const CURSOR = /^[0-9]{1,16}_[A-Za-z0-9._-]{1,128}$/;

/** The query parameters of every list. */
export const pageQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .default(DEFAULT_LIMIT)
    .describe("most entries to return"),
  after: z
    .string()
    .regex(CURSOR, "is not a cursor that this list gave")
    .optional()
    .describe("`next_cursor` of the previous page"),
};

/** The response of a list: `{"<name>": […], "has_more", "next_cursor"}`. */
export const listOf = <T extends z.ZodType>(name: string, item: T) =>
  z.object({
    [name]: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  });

export function pageOf(query: { limit: number; after?: string | undefined }): Page {
  return { limit: query.limit, after: query.after === undefined ? undefined : read(query.after) };
}

/**
 * Builds the response from the rows of `listPage`. Drops the extra row, which only shows that
 * another page follows, and adds the next page's cursor.
 */
export function presentPage<Row, Shown>(
  name: string,
  rows: WithPosition<Row>[],
  page: Page,
  idOf: (row: Row) => string,
  present: (row: Row) => Shown,
): Record<string, unknown> {
  const shown = rows.slice(0, page.limit);
  const found = rows[0]?.found ?? rows.length;
  const last = found > shown.length ? shown.at(-1) : undefined;
  return {
    [name]: shown.map(present),
    has_more: last !== undefined,
    next_cursor: last ? `${last.created_us}_${idOf(last)}` : null,
  };
}

function read(cursor: string): Cursor {
  const at = cursor.indexOf("_");
  return { createdUs: Number(cursor.slice(0, at)), id: cursor.slice(at + 1) };
}
