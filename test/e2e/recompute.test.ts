/**
 * `forge-server billing recompute --check` finds and names every change that bypasses the triggers.
 */

import pg from "pg";
import { recompute } from "../../services/billing/recompute";
import { type Forge, startForge } from "../support/forge";
import { recomputeBills } from "../support/forge-server";
import { seedBills } from "../support/seeded-bills";
import { createTenant } from "../support/tenants";

let forge: Forge;
let client: pg.Client;
/** The id of an audit job with a bill in the current month. `seedBills` inserts both. */
const JOB = "job_acme_09999995";
const BILLS = 20;

beforeAll(async () => {
  forge = await startForge();
  await createTenant(forge, "acme");
  await seedBills(forge, "acme", BILLS);
  client = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await client.connect();
  await client.query("set session_replication_role = replica");
  expect((await recomputeBills(forge, "--rebuild-totals")).code).toBe(0);
  for (const table of TABLES) await client.query(`create table kept_${table} as table ${table}`);
});

const TABLES = ["billing_records", "billing_lines", "billing_totals", "billing_days"];

afterEach(async () => {
  for (const table of TABLES) {
    await client.query(`delete from ${table}; insert into ${table} select * from kept_${table}`);
  }
  expect(await recompute(forge.ctx.pool)).toEqual({ records: 22, differences: [] });
});

afterAll(async () => {
  await client?.end();
  await forge?.stop();
});

const OF_TOTAL = /^total of acme, \d{4}-\d\d, /;
const OF_DAY = /^day \d{4}-\d\d-\d\d of acme, audit: /;
/**
 * Matches every difference that is expected after a test changes the billing record or a billing
 * line of JOB: a difference in the record, in a total, or in a day.
 */
const OF_RECORD = new RegExp(`^record ${JOB}: |${OF_TOTAL.source}|${OF_DAY.source}`);

test.each([
  [
    "a record's total",
    `update billing_records set total_cost_usd = total_cost_usd + 0.000001 where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  [
    "the usage of its attempt",
    `update billing_records set attempts = jsonb_set(attempts, '{0,usage,rows_processed}', '999')
     where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  [
    "its metrics",
    `update billing_records set metrics = metrics || '{"gpu_hours": 3}' where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  [
    "a price of its rate card",
    `update billing_records set rate_card = rate_card || '{"auditPer1kRows": "0.21"}'
     where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  [
    "a month's line",
    `update billing_lines set cost_usd = cost_usd + 1 where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  ["a missing line", `delete from billing_lines where job_id = '${JOB}'`, OF_RECORD],
  [
    "a duplicate line",
    `insert into billing_lines (line_id, user_id, month, job_id, cost_usd)
     select 'again', user_id, month - interval '6 months', job_id, 1 from billing_lines
     where job_id = '${JOB}'`,
    OF_RECORD,
  ],
  ["a day", "update billing_days set cost_usd = cost_usd + 1 where job_type = 'audit'", OF_DAY],
  ["a missing day", "delete from billing_days where job_type = 'audit'", OF_DAY],
  ["a total", "update billing_totals set cost_usd = cost_usd + 1 where value = 'audit'", OF_TOTAL],
  ["a count", "update billing_totals set records = records + 1 where value = 'all'", OF_TOTAL],
  ["a missing total", "delete from billing_totals where dimension = 'pipeline'", OF_TOTAL],
  [
    "a total without records",
    `insert into billing_totals select user_id, '2001-01-01', dimension, value, records, cost_usd, gpu_hours,
       tokens, unbilled_gpu_hours from billing_totals where value = 'all' limit 1`,
    OF_TOTAL,
  ],
])("%s is found", async (_what, statement, named) => {
  const { rowCount } = await client.query(statement);
  expect(rowCount).toBeGreaterThan(0);
  const { differences } = await recompute(forge.ctx.pool);
  expect(differences.filter((difference) => !named.test(difference))).toEqual([]);
  expect(differences.length).toBeGreaterThan(0);
});

test("the command says so too, and ends with 1", async () => {
  await client.query("update billing_totals set tokens = tokens + 1 where value = 'team-1'");
  const { code, stdout } = await recomputeBills(forge);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^total of acme, \d{4}-\d\d, tag "team-1": .*\n/);
  expect(stdout).toMatch(/\n22 records, [12] differences\n$/);
});

test("wrong totals are recomputed, and a wrong record is left unchanged", async () => {
  await client.query("update billing_totals set cost_usd = 7");
  expect((await recomputeBills(forge, "--rebuild-totals")).code).toBe(0);
  await client.query(`update billing_records set total_cost_usd = 7 where job_id = '${JOB}'`);
  expect((await recomputeBills(forge, "--rebuild-totals")).code).toBe(1);
});
