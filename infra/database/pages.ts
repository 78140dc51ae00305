import type pg from "pg";
import { all, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

/** Where a page of a list begins: after this row, newest first. */
export interface Cursor {
  /** When that row was created, in microseconds since the epoch: as exact as Postgres keeps it. */
  createdUs: number;
  id: string;
}

export interface Page {
  limit: number;
  after?: Cursor | undefined;
}

export type WithPosition<Row> = Row & { created_us: number };

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
    this.values.push(value);
    return this.and(condition(`$${this.values.length}`));
  }

  /** Rows that this viewer may see. Everybody's come by the indexes made for that (migration 0006). */
  seenBy(viewer: Viewer): this {
    if (viewer === null) return this.and("length(user_id) > 0");
    return this.also(viewer, (user) => `user_id = ${user}`);
  }

  and(condition: string): this {
    this.conditions.push(condition);
    return this;
  }

  toString(): string {
    return this.conditions.length > 0 ? this.conditions.join(" and ") : "true";
  }
}

interface List {
  select: string;
  from: string;
  /** The columns by which it is ordered, both descending; together they are unique. */
  order: [createdAt: string, id: string];
  where: Where;
  page: Page;
}

/** One page of a list, and one row more, which tells whether another page follows. */
export async function listPage<Row extends pg.QueryResultRow>(
  db: Queryable,
  list: List,
): Promise<WithPosition<Row>[]> {
  const { text, values } = pageStatement(list);
  return await all(db, text, values);
}

/** Rows that appear meanwhile are newer than the cursor: no page shows a row twice, or skips one. */
export function pageStatement({ select, from, order, where, page }: List): {
  text: string;
  values: unknown[];
} {
  const [createdAt, id] = order;
  if (page.after) {
    const { createdUs, id: afterId } = page.after;
    where.values.push(createdUs, afterId);
    const [us, last] = [`$${where.values.length - 1}`, `$${where.values.length}`];
    where.and(
      `(${createdAt}, ${id}) < (timestamptz 'epoch' + ${us}::bigint * interval '1 microsecond', ${last}::text)`,
    );
  }
  const values = [...where.values, page.limit + 1];
  return {
    text: `select ${select}, (extract(epoch from ${createdAt}) * 1000000)::bigint as created_us
      from ${from} where ${where} order by ${createdAt} desc, ${id} desc limit $${values.length}`,
    values,
  };
}
