import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Decimal } from "decimal.js";
import type { ApiClient } from "../../dev/api-client";
import { all } from "../../platform/postgres/pool";
import { expectedUsd } from "./expected-bills";
import type { Forge } from "./forge";
import { sumCsv } from "./large-ledger";
import { reportedBy } from "./random-jobs";

export interface BillingRecord {
  job_id: string;
  job_type: string;
  total_cost_usd: number;
  cost_breakdown: Record<string, number>;
  state: string;
  rate_card: string;
  created_at: string;
  flags: string[];
  attempts: { attempt: number; billed: boolean; gpu_hours: number; gpu_hours_measured: number }[];
}

export interface Summary {
  period: string;
  total_cost_usd: number;
  records: number;
  by_job_type: Record<string, number>;
  by_tag: Record<string, number>;
  storage: { amount_usd: number };
  estimated_invoice: { lines: { amount_usd: number }[]; total_usd: number };
}

const sumOf = (amounts: Iterable<number>): string => Decimal.sum(0, ...amounts).toFixed();

/** Reads all pages. */
async function readRecords(user: ApiClient): Promise<BillingRecord[]> {
  const records: BillingRecord[] = [];
  for (let after = ""; ; ) {
    const page = await user.get<{ records: BillingRecord[]; next_cursor: string | null }>(
      `/api/billing/records?limit=200${after}`,
    );
    records.push(...page.records);
    if (page.next_cursor === null) return records;
    after = `&after=${page.next_cursor}`;
  }
}

/**
 * Proves that all views of a tenant's bills add up to the same: record by record, month by month,
 * by type and by tag, as an invoice, as CSV, and as files.
 *
 * @returns the records, the number of their months, and their total cost.
 */
export async function proveSums(
  forge: Forge,
  userId: string,
  user: ApiClient,
): Promise<{ records: BillingRecord[]; months: number; usd: string }> {
  const records = await readRecords(user);
  expect(new Set(records.map(({ job_id: id }) => id)).size).toBe(records.length);
  expect(records.filter(({ state }) => state !== "final")).toEqual([]);
  const months = [...new Set(records.map(({ created_at: at }) => at.slice(0, 7)))].sort();
  const tags = await tagsOf(forge, userId);
  // In these tests, the whole cost of a record belongs to the month of its `created_at`. Only a
  // deployment could have costs in several months, and no deployment in these tests spans two.
  const summaries = await Promise.all(
    months.map((month) => user.get<Summary>(`/api/billing/summary?period=${month}`)),
  );
  for (const summary of summaries) {
    const own = records.filter(({ created_at: at }) => at.startsWith(summary.period));
    const usd = (of: (record: BillingRecord) => boolean): string =>
      sumOf(own.filter(of).map(({ total_cost_usd: cost }) => cost));
    const total = usd(() => true);
    expect([summary.records, fixed(summary.total_cost_usd)]).toEqual([own.length, total]);
    expect(sumOf(Object.values(summary.by_job_type))).toBe(total);
    for (const [type, cost] of Object.entries(summary.by_job_type)) {
      expect([type, fixed(cost)]).toEqual([type, usd(({ job_type }) => job_type === type)]);
    }
    for (const tag of new Set([...tags.values()].flat())) {
      const carried = usd(({ job_id: id }) => tags.get(id)?.includes(tag) ?? false);
      expect([tag, fixed(summary.by_tag[tag] ?? 0)]).toEqual([tag, carried]);
    }
    const { lines, total_usd: invoiced } = summary.estimated_invoice;
    expect(sumOf(lines.map(({ amount_usd: amount }) => amount))).toBe(fixed(invoiced));
    const csv = await sumCsv(user, `/api/billing/export?period=${summary.period}`);
    expect(csv).toEqual({ lines: own.length, usd: total });
  }
  const usd = sumOf(records.map(({ total_cost_usd: cost }) => cost));
  expect(sumOf(summaries.map(({ total_cost_usd: cost }) => cost))).toBe(usd);
  proveFiles(forge, userId, records);
  return { records, months: months.length, usd };
}

const fixed = (usd: number): string => new Decimal(usd).toFixed();

async function tagsOf({ ctx }: Forge, userId: string): Promise<Map<string, string[]>> {
  const jobs = await all<{ job_id: string; tags: string[] }>(
    ctx.pool,
    "select job_id, tags from jobs where user_id = $1",
    [userId],
  );
  return new Map(jobs.map(({ job_id: id, tags }) => [id, tags]));
}

/** Proves that each record has exactly one file, with the content that the API returns. */
function proveFiles({ stack }: Forge, userId: string, records: BillingRecord[]): void {
  const folder = join(stack.storeDir, "billing", "records", userId);
  const names = records.map(({ job_id: id }) => `${id}.json`).sort();
  // Ignore incomplete files that a killed process may have left. Their names end with `.part`.
  const whole = readdirSync(folder).filter((name) => !name.endsWith(".part"));
  expect(whole.sort()).toEqual(names);
  for (const record of records) {
    const file = readFileSync(join(folder, `${record.job_id}.json`), "utf8");
    expect(JSON.parse(file)).toEqual(record);
  }
}

interface MeasuredAttempt {
  job_id: string;
  attempt: number;
  hours: number;
  gpu: string;
  seconds: number;
  size: number | null;
}

/**
 * Checks each record, except those of deployments. Computes the expected cost from the prices of
 * the specification, the usage that the simulated worker reported, and the run time of the attempt.
 * The computation shares no code with the product.
 */
export async function provePrices({ ctx }: Forge, records: BillingRecord[]): Promise<void> {
  const measured = await all<MeasuredAttempt & Record<string, unknown>>(
    ctx.pool,
    `select job_id, attempt, coalesce(gpu_hours_measured, 0) as hours, gpu_name as gpu,
            extract(epoch from a.ended_at - a.started_at)::float8 as seconds,
            case when job_type = 'generate' then (payload->>'size')::int end as size
     from attempts a join workers w on w.worker_id = a.worker_id join jobs using (job_id)
     where state = 'ended'`,
  );
  const ofAttempt = new Map(measured.map((one) => [`${one.job_id} ${one.attempt}`, one]));
  for (const record of records.filter(({ job_type: type }) => type !== "deploy")) {
    const [winner, ...others] = record.attempts.filter(({ billed }) => billed);
    const facts = ofAttempt.get(`${record.job_id} ${winner?.attempt}`);
    expect([record.job_id, others]).toEqual([record.job_id, []]);
    if (!winner || !facts) throw new Error(`${record.job_id} has no winner`);
    const expected = expectedUsd({
      type: record.job_type,
      card: record.rate_card,
      gpu: facts.gpu,
      measuredHours: facts.hours,
      seconds: facts.seconds,
      size: facts.size,
      metrics: reportedBy({ job_id: record.job_id, attempt: winner.attempt }),
    });
    expect([record.job_id, fixed(record.total_cost_usd)]).toEqual([record.job_id, expected]);
  }
}
