import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { recomputeBills } from "../support/forge-server";
import { mediansOf, plainSum, residentMb, sumCsv } from "../support/large-ledger";
import type { Summary } from "../support/prove-bills";
import { seedBills } from "../support/seeded-bills";
import { createTenant, type Tenant } from "../support/tenants";

const MANY = 1_000_000;
const FEW = 10_000;
const ROUNDS = 200;
const MAX_RATIO = 1.3;

let forge: Forge;
let small: Tenant;
let large: Tenant;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: "10000000",
    FORGE_RATE_LIMIT_BURST: "1000000",
  });
  small = await createTenant(forge, "small");
  large = await createTenant(forge, "large");
  await seedBills(forge, "small", FEW);
  await seedBills(forge, "large", MANY);
  await vacuum();
  const { code, stdout } = await recomputeBills(forge, "--rebuild-totals");
  expect(stdout).toMatch(`\n${((MANY + FEW) * 11) / 10} records, 0 differences\n`);
  expect(code).toBe(0);
}, 900_000);

afterAll(async () => {
  await forge?.stop();
});

/** Vacuums all tables, as autovacuum would have done in a database that grew slowly. */
async function vacuum(): Promise<void> {
  const client = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await client.connect();
  await client.query("vacuum analyze");
  await client.end();
}

const summaryOf = ({ user }: Tenant, period = ""): Promise<Summary> =>
  user.get<Summary>(`/api/billing/summary${period && `?period=${period}`}`);

test(`a summary of ${MANY} records takes no longer than one of ${FEW}`, async () => {
  const times = await mediansOf(ROUNDS, {
    few: () => summaryOf(small),
    many: () => summaryOf(large),
  });
  process.stderr.write(
    `summary: ${times.few.toFixed(2)} ms of ${FEW}, ${times.many.toFixed(2)} ms of ${MANY}\n`,
  );
  expect(times.many).toBeLessThan(100);
  expect(times.many / times.few).toBeLessThanOrEqual(MAX_RATIO);
}, 120_000);

test("both months and their downloads equal the plain sums of their records", async () => {
  const { period: now, ...summary } = await summaryOf(large);
  expect(summary.records).toBe(MANY);
  const before = new Date(`${now}-01T00:00:00Z`);
  before.setUTCMonth(before.getUTCMonth() - 1);
  for (const period of [before.toISOString().slice(0, 7), now]) {
    const plain = await plainSum(forge, "large", period);
    const { total_cost_usd: total, records, by_tag: tags } = await summaryOf(large, period);
    expect([records, String(total), String(tags.all)]).toEqual([
      plain.records,
      plain.usd,
      plain.usd,
    ]);
  }
  const pid = forge.stack.server?.pid ?? 0;
  const first = residentMb(pid);
  let most = first;
  const { lines, usd } = await sumCsv(large.user, "/api/billing/export", () => {
    most = Math.max(most, residentMb(pid));
  });
  process.stderr.write(`export of ${lines} lines: ${first} MB before, ${most} MB at most\n`);
  expect([lines, usd]).toEqual([MANY, String(summary.total_cost_usd)]);
  expect(most - first).toBeLessThan(100);
}, 600_000);

test("the cost of a submission under a budget does not grow with the number of bills", async () => {
  const audit = { dataset_uri: "s3://bucket/key.parquet" };
  const asked = { job_type: "train", payload: { dataset_id: "ds", model: "m", epochs: 1 } };
  for (const { user } of [small, large]) {
    await user.call("PUT", "/api/billing/budget", { cap_usd: 1e9 });
  }
  const of = (what: (tenant: Tenant) => Promise<unknown>) =>
    mediansOf(Math.ceil(ROUNDS / 4), { few: () => what(small), many: () => what(large) });
  const times = {
    records: await of(({ user }) => user.get("/api/billing/records")),
    estimate: await of(({ user }) => user.post("/api/billing/estimate", asked)),
    submission: await of(({ user }) => user.submit("audit", audit)),
    budget: await of(({ user }) => user.get("/api/billing/budget")),
  };
  for (const [what, { few, many }] of Object.entries(times)) {
    process.stderr.write(`${what}: ${few.toFixed(1)} ms, ${many.toFixed(1)} ms\n`);
    // A scan of the larger tenant's rows would read twenty to a hundred times as much.
    expect([what, many < few * 3 + 20]).toEqual([what, true]);
  }
}, 120_000);

test("new bills are added to the totals", async () => {
  const worker = large.worker("hand");
  await worker.register();
  const { period, total_cost_usd: total, records } = await summaryOf(large);
  // The previous test has submitted jobs that still wait. The worker takes one of them.
  const job = await worker.take();
  await worker.complete(job, { metrics: { rows_processed: 12_345 } });
  await forge.admin.get(`/api/jobs/${job.job_id}`);
  const after = await untilBilled(records + 1);
  expect(after.total_cost_usd).toBeCloseTo(total + 2.469, 6);
  expect(String(after.total_cost_usd)).toBe((await plainSum(forge, "large", period)).usd);
  expect((await recomputeBills(forge)).stdout).toMatch(/ 0 differences\n$/);
}, 600_000);

async function untilBilled(records: number): Promise<Summary> {
  return await waitFor("the bill", async () => {
    const summary = await summaryOf(large);
    return summary.records === records && summary;
  });
}
