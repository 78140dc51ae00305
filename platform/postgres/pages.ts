import type pg from "pg";
import type { TenantScope } from "../../core/accounts/principal";
import { allUnprepared, type Queryable } from "./pool";

/** Where a page of a list begins: after this row, newest first. */
export interface Cursor {
  /**
   * When that row was created, in microseconds since the epoch: as exact as Postgres keeps it. In a list by
   * amount, its amount in millionths.
   */
  createdUs: number;
  id: string;
}

export interface Page {
  limit: number;
  after?: Cursor | undefined;
}

/** A row and where it stands in its list; how many were found, where a page may show fewer. */
export type WithPosition<Row> = Row & { created_us: number; found?: number };

/** A page ends early, and another begins, where its rows would make the answer larger than this. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * The conditions of one list. Only those that are asked for are in the statement, so that each
 * combination is planned for itself and comes off an index in order.
 */
export class Where {
  private readonly conditions: string[] = [];
  readonly values: unknown[] = [];

  /** Adds a condition on a parameter, unless its value was not given. */
  also(value: unknown, condition: (parameter: string) => string): this {
    if (value === undefined || value === null) return this;
    return this.with(value, condition);
  }

  /** The same whether or not it was given. */
  with(value: unknown, condition: (parameter: string) => string): this {
    this.values.push(value);
    return this.and(condition(`$${this.values.length}`));
  }

  /** Rows that this viewer may see. Everybody's come by the indexes made for that (migration 0006). */
  seenBy(tenantScope: TenantScope): this {
    if (tenantScope === null) return this.and("length(user_id) > 0");
    return this.also(tenantScope, (user) => `user_id = ${user}`);
  }

  and(condition: string): this {
    this.conditions.push(condition);
    return this;
  }

  toString(): string {
    return this.conditions.length > 0 ? this.conditions.join(" and ") : "true";
  }
}

/** What the first column of an order holds, as a whole number and back from one. */
const NUMBERS = {
  time: {
    of: (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`,
    back: (number: string) => `timestamptz 'epoch' + ${number}::bigint * interval '1 microsecond'`,
  },
  amount: {
    of: (column: string) => `(${column} * 1000000)::bigint`,
    back: (number: string) => `${number}::bigint / 1000000::numeric`,
  },
} as const;

interface List {
  select: string;
  from: string;
  /** The columns by which it is ordered, both descending; together they are unique. */
  order: [first: string, id: string];
  /** By default time. */
  orderedBy?: keyof typeof NUMBERS;
  where: Where;
  page: Page;
  /** A column with the size of what is shown of a row, where that may be large. */
  sizedBy?: string;
}

/** One page of a list, and one row more, which tells whether another page follows. */
export async function listPage<Row extends pg.QueryResultRow>(
  db: Queryable,
  list: List,
): Promise<WithPosition<Row>[]> {
  const { text, values } = pageStatement(list);
  return await allUnprepared(db, text, values);
}

/** Rows that appear meanwhile are newer than the cursor: no page shows a row twice, or skips one. */
export function pageStatement(list: List): { text: string; values: unknown[] } {
  const { select, from, order, orderedBy = "time", where, page, sizedBy } = list;
  const [first, id] = order;
  const number = NUMBERS[orderedBy];
  if (page.after) {
    const { createdUs, id: afterId } = page.after;
    where.values.push(createdUs, afterId);
    const us = `$${where.values.length - 1}`;
    const last = `$${where.values.length}`;
    where.and(`(${first}, ${id}) < (${number.back(us)}, ${last}::text)`);
  }
  const values = [...where.values, page.limit + 1];
  const rows = `select ${select}, ${number.of(first)} as created_us
      from ${from} where ${where} order by ${first} desc, ${id} desc limit $${values.length}`;
  return { text: sizedBy ? cutBySize(rows, id, sizedBy) : rows, values };
}

/** As many of the rows as their sizes allow, but one at least. */
const cutBySize = (rows: string, id: string, size: string): string => `
  with page as (${rows}),
  summed as (
    select page.*, count(*) over () as found, sum(${size}) over newest_first - ${size} as before
    from page window newest_first as (order by created_us desc, ${id} desc rows unbounded preceding))
  select * from summed where before <= ${MAX_PAGE_BYTES} order by created_us desc, ${id} desc`;
