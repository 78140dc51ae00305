import type pg from "pg";
import type { TenantScope } from "../../core/accounts/permissions";
import { Parameters } from "./parameters";
import { all, allUnprepared, type Queryable } from "./pool";

/** A page begins after this row. Lists are ordered newest first. */
export interface Cursor {
  /**
   * Creation time of the row in microseconds since the epoch, which is Postgres's precision. In a
   * list ordered by amount: the amount in millionths.
   */
  createdUs: number;
  id: string;
}

export interface Page {
  limit: number;
  after?: Cursor | undefined;
}

/**
 * A row with its position in the list. `found` is the number of rows that the page had before it
 * was cut at MAX_PAGE_BYTES. Only the rows of lists with `sizedBy` have this field.
 */
export type WithPosition<Row> = Row & { created_us: number; found?: number };

/**
 * Limit for the total size of a page's rows in the response, in bytes. A page ends with the row
 * that brings the total above this limit.
 */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * Builds the WHERE clause of a list. It contains only the requested conditions, so that Postgres
 * plans each combination separately and can read the rows in order from an index.
 */
export class Where extends Parameters {
  private readonly conditions: string[] = [];
  /** Whether the list has any condition besides its tenant. */
  hasFilters = false;

  /** Adds a condition on a parameter if its value is set. */
  andIfSet(value: unknown, condition: (parameter: string) => string): this {
    if (value === undefined || value === null) return this;
    return this.andParameter(value, condition);
  }

  /** Adds a condition on a parameter, even if its value is null. */
  andParameter(value: unknown, condition: (parameter: string) => string): this {
    return this.and(condition(this.add(value)));
  }

  /**
   * Limits rows to a tenant scope. Null means all tenants: then the condition is
   * `length(user_id) > 0`, which is true for every row. Some partial indexes have the same
   * condition, and Postgres uses such an index only for queries that contain it.
   */
  inTenantScope(tenantScope: TenantScope): this {
    this.conditions.push(
      tenantScope === null ? "length(user_id) > 0" : `user_id = ${this.add(tenantScope)}`,
    );
    return this;
  }

  and(condition: string): this {
    this.conditions.push(condition);
    this.hasFilters = true;
    return this;
  }

  override toString(): string {
    return this.conditions.length > 0 ? this.conditions.join(" and ") : "true";
  }
}

/** SQL that converts the first column of `List.order` to the cursor's integer, and back. */
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
  /** The columns to order by, both descending. Together they are unique. */
  order: [first: string, id: string];
  /** What the first column holds. Default: time. */
  orderedBy?: keyof typeof NUMBERS;
  where: Where;
  page: Page;
  /** The column with a row's size in the response. Set for lists whose rows may be large. */
  sizedBy?: string;
}

/** Reads one page of a list, plus one row that shows whether another page follows. */
export async function listPage<Row extends pg.QueryResultRow>(
  db: Queryable,
  list: List,
): Promise<WithPosition<Row>[]> {
  return await readPage(db, pageStatement(list));
}

/**
 * Reads the rows of `pageStatement`. Prepares the statement, because planning takes longer than
 * reading a page. A statement whose text has many variants is not prepared (`hasManyVariants`).
 */
export async function readPage<Row extends pg.QueryResultRow>(
  db: Queryable,
  { text, values, hasManyVariants }: PageStatement,
): Promise<WithPosition<Row>[]> {
  const read = hasManyVariants ? allUnprepared : all;
  return await read<WithPosition<Row>>(db, text, values);
}

interface PageStatement {
  text: string;
  values: unknown[];
  /**
   * Whether `text` depends on filters or on an unusual limit, so that clients can cause many
   * variants of it.
   */
  hasManyVariants: boolean;
}

/**
 * Statements are prepared only for these page sizes. The size is part of a statement's text: if
 * statements of all sizes were prepared, clients could make each connection keep thousands of
 * plans.
 */
const COMMON_LIMITS = [20, 50, 100, 200];

/**
 * Builds the statement of one page. The page begins after the cursor's position instead of at a row
 * number, so that rows inserted between two requests never make a page repeat or skip rows.
 */
export function pageStatement(list: List): PageStatement {
  const { select, from, order, orderedBy = "time", where, page, sizedBy } = list;
  const hasManyVariants = where.hasFilters || !COMMON_LIMITS.includes(page.limit);
  const [first, id] = order;
  const number = NUMBERS[orderedBy];
  if (page.after) {
    const { createdUs, id: afterId } = page.after;
    const us = where.add(createdUs);
    where.and(`(${first}, ${id}) < (${number.back(us)}, ${where.add(afterId)}::text)`);
  }
  // The limit is part of the text instead of a parameter. So Postgres knows, when it plans the
  // prepared statement, that only a few rows are needed.
  const rows = `select ${select}, ${number.of(first)} as created_us
      from ${from} where ${where} order by ${first} desc, ${id} desc limit ${page.limit + 1}`;
  const text = sizedBy ? cutBySize(rows, id, sizedBy) : rows;
  return { text, values: where.values, hasManyVariants };
}

/**
 * Cuts a page after the row that brings its total size above MAX_PAGE_BYTES. So a page has at least
 * one row, even if this row alone is above the limit.
 */
const cutBySize = (rows: string, id: string, size: string): string => `
  with page as (${rows}),
  summed as (
    select page.*, count(*) over () as found, sum(${size}) over newest_first - ${size} as before
    from page window newest_first as (order by created_us desc, ${id} desc rows unbounded preceding))
  select * from summed where before <= ${MAX_PAGE_BYTES} order by created_us desc, ${id} desc`;
