/** Many tenants with years of storage. Rows are written with SQL, without a server. */

import { all, execute } from "../../platform/postgres/pool";
import { listUnwrittenStorage } from "../../services/billing/billing-months";
import { closeMonths } from "../../services/billing/close-months";
import { advanceOpenMonths } from "../../services/billing/storage-months";
import { blocksRead } from "../support/blocks-read";
import { type Database, openDatabase } from "../support/database";

const TENANTS = 450;
const MONTHS = 36;

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase();
});

afterAll(async () => {
  await forge?.stop();
});

async function passOverAll(): Promise<number> {
  let pages = 0;
  let after = "";
  do {
    after = await advanceOpenMonths(forge.ctx.pool, after);
    pages += 1;
  } while (after !== "");
  return pages;
}

/**
 * Creates tenants with the ids `name`001, `name`002 and so on. Each has stored 1 GB since `months`
 * months ago.
 */
async function store(name: string, tenants: number, months: number): Promise<void> {
  const { pool } = forge.ctx;
  await execute(
    pool,
    `insert into users (user_id, name)
     select $1 || lpad(n::text, 3, '0'), 'tenant' from generate_series(1, $2::int) n`,
    [name, tenants],
  );
  await execute(
    pool,
    `insert into storage_changes
     select $1 || lpad(n::text, 3, '0'),
            date_trunc('month', now() - make_interval(months => $3))::date, 1e9, 0
     from generate_series(1, $2::int) n`,
    [name, tenants, months],
  );
}

const payFor = async (name: string): Promise<unknown> =>
  await execute(
    forge.ctx.pool,
    `insert into tenant_rate_cards (user_id, rate_card, effective_from, created_by)
     select user_id, 'kept', now() - interval '10 years', 'k' from users where user_id like $1`,
    [`${name}%`],
  );

test("months without a cost are read once, not at each closing", async () => {
  const { pool } = forge.ctx;
  await store("free", TENANTS, MONTHS);
  await pool.query("vacuum analyze storage_changes, storage_months, users, rate_cards");
  expect(await passOverAll()).toBe(Math.ceil(TENANTS / 200));
  const tables = ["rate_cards", "tenant_rate_cards", "billing_lines", "storage_changes"];
  const read = await blocksRead(forge, tables, (one) => listUnwrittenStorage(one, 1_000));
  expect(read).toBeLessThan(100);
});

test("tenants whose months can't be written don't block others", async () => {
  const { pool } = forge.ctx;
  await pool.query(
    `insert into rate_cards (name, version, effective_from, prices, created_by)
     select 'kept', 1, '2000-01-01', prices || '{"basis": "metered", "storage_per_gb_month": 1}', 'k'
     from rate_cards where name = 'metered' order by version desc limit 1`,
  );
  await store("pays", 60, 2);
  await payFor("pays");
  await passOverAll();
  // Make the database refuse the bill lines of the first 52 tenants. These are 104 lines, more than
  // `closeMonths` reads at once (100).
  await pool.query("alter table billing_lines add constraint no_more check (user_id > 'pays052')");
  while ((await closeMonths(forge.ctx)) > 0);
  const lines = "select user_id, count(*) as n from billing_lines group by 1 order by 1";
  const expected = Array.from({ length: 8 }, (_, n) => ({ user_id: `pays0${n + 53}`, n: 2 }));
  expect(await all(pool, lines)).toEqual(expected);
  await pool.query("alter table billing_lines drop constraint no_more");
  while ((await closeMonths(forge.ctx)) > 0);
  expect(await all(pool, lines)).toHaveLength(60);
  expect(await listUnwrittenStorage(pool, 1_000)).toEqual([]);
});

test("late storage or prices of an earlier month are written, too; an unfinished month is not", async () => {
  const { pool } = forge.ctx;
  const months = async (name: string): Promise<number> =>
    (await all(pool, "select from billing_lines where user_id = $1", [`${name}001`])).length;
  await store("late", 1, 1);
  await store("priced", 1, 3);
  await payFor("late");
  await passOverAll();
  while ((await closeMonths(forge.ctx)) > 0);
  await passOverAll();
  expect(await months("late")).toBe(1);
  await execute(
    pool,
    "insert into storage_changes values ('late001', date_trunc('month', now() - interval '4 months')::date, 1, 0)",
  );
  await payFor("priced");
  while ((await closeMonths(forge.ctx)) > 0);
  expect([await months("late"), await months("priced")]).toEqual([4, 3]);
  await passOverAll();
  expect(
    await all(
      pool,
      "select from storage_months where open_month > date_trunc('month', now() at time zone 'UTC')",
    ),
  ).toEqual([]);
});

test("a clock that was set forward skips nothing", async () => {
  const { pool } = forge.ctx;
  await store("ahead", 1, 1);
  await execute(pool, "insert into clock_steps (by_s) values (40 * 86400)");
  const open = "select open_month from storage_months where user_id = 'ahead001'";
  const before = await all(pool, open);
  await passOverAll();
  expect(await all(pool, open)).toEqual(before);
  await pool.query("delete from clock_steps");
  await passOverAll();
  expect(await all(pool, open)).not.toEqual(before);
});
