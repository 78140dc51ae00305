/**
 * Temporal is down from before the end of a month until after that month is closed. Each job that
 * ended in that month while Temporal was down is billed, or recorded as not billed, exactly once:
 * in the next month, which is still open.
 */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { readSummary, recomputeCheck, type Summary } from "../support/billing";
import { type Forge, startForge } from "../support/forge";
import { backdateStart, untilEnded } from "../support/jobs";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_BILL_OUTCOMES: "failed",
      FORGE_BILLING_EXPORT: "csv",
      FORGE_BILLING_EXPORT_INTERVAL_S: "0.2",
    },
    { own: ["temporal"] },
  );
});

afterAll(async () => {
  try {
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

const A100 = { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 };
const TRAIN = { dataset_id: "ds", model: "m", epochs: 1, max_attempts: 2 };

interface Running {
  worker: TestWorker;
  job: DispatchedJob;
}

/** A job that has run for `hours` on a worker of its own. */
async function running(workerId: string, hours: number): Promise<Running> {
  const worker = await forge.worker(workerId, A100);
  await forge.user.submit("train", TRAIN);
  const job = await worker.take();
  await backdateStart(forge, job, hours);
  return { worker, job };
}

/**
 * A job whose second attempt has run for `hours`. Its first attempt had run for `lostHours` and was
 * lost when the worker restarted.
 */
async function runningAgain(workerId: string, hours: number, lostHours: number): Promise<Running> {
  const { worker } = await running(workerId, lostHours);
  await worker.register(A100, { boot_id: "restarted" });
  const job = await worker.take();
  await backdateStart(forge, job, hours);
  return { worker, job };
}

/**
 * The month that is open for billing, and the month before it. A month stays open for an hour after
 * its end.
 */
async function monthsOf(): Promise<[open: string, last: string]> {
  const [row] = await all<{ open: string; last: string }>(
    forge.ctx.pool,
    `select to_char(m, 'YYYY-MM') as open, to_char(m - interval '1 day', 'YYYY-MM') as last
     from date_trunc('month', now() at time zone 'UTC' - interval '1 hour') m`,
  );
  return [row?.open ?? "", row?.last ?? ""];
}

/**
 * Moves all times of these jobs' attempts back, as if the attempts had ended a day before the open
 * month.
 */
async function moveToLastMonth(jobIds: string[]): Promise<void> {
  await transaction(forge.ctx.pool, async (db) => {
    // Disables the trigger that keeps ended attempts from changing.
    await execute(db, "set local session_replication_role = replica");
    await execute(
      db,
      `update attempts a set ended_at = ended_at - by, started_at = started_at - by,
              assigned_at = assigned_at - by, queued_at = queued_at - by
       from (select now() - (date_trunc('month', now() at time zone 'UTC' - interval '1 hour')
                    - interval '1 day') at time zone 'UTC' as by) earlier
       where job_id = any($1)`,
      [jobIds],
    );
  });
}

const linesOf = (jobIds: string[]) =>
  all<{ job_id: string; month: string }>(
    forge.ctx.pool,
    `select job_id, to_char(month, 'YYYY-MM') as month, cost_usd::float8 as cost_usd,
            gpu_hours::float8 as gpu_hours, unbilled_gpu_hours::float8 as unbilled_gpu_hours, is_billed
     from billing_lines where job_id = any($1) order by cost_usd desc`,
    [jobIds],
  );

/** The jobs on the lines of a month's CSV. */
async function inCsv(period: string): Promise<string[]> {
  const answer = await fetch(`${forge.stack.apiUrl}/api/billing/export?period=${period}`, {
    headers: { "x-service-api-key": forge.user.key },
  });
  const rows: { job_id: string }[] = parse(await answer.text(), { columns: true });
  return rows.map(({ job_id: id }) => id).sort();
}

/** The jobs in the exporter's files. */
function inFiles(): string[] {
  const directory = join(forge.stack.storeDir, "billing", "exports");
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return files.flatMap((file) => /(job_\w+)%3A.*\.csv$/.exec(file)?.slice(1) ?? []).sort();
}

const usageOf = ({ records, total_cost_usd, gpu_hours_total, unbilled_gpu_hours }: Summary) => ({
  ...{ records, total_cost_usd, gpu_hours_total, unbilled_gpu_hours },
});

test("GPU hours that are billed, or recorded as unbilled, after their month is closed count once, in the open month", async () => {
  const [open, last] = await monthsOf();
  const completed = await runningAgain("completes", 2, 4);
  const failed = await running("fails", 1);
  const cancelled = await running("is-cancelled", 8);
  const ids = [completed, failed, cancelled].map(({ job }) => job.job_id);
  const [completedId = "", failedId = "", cancelledId = ""] = ids;

  forge.own("temporal").signal("SIGSTOP");
  const of = (hours: number) => ({ metrics: { gpu_hours: hours } });
  expect((await completed.worker.complete(completed.job, of(2))).status).toBe(200);
  expect((await failed.worker.fail(failed.job, of(1))).status).toBe(200);
  await forge.user.post(`/api/jobs/${cancelledId}/cancel`, {});
  expect((await cancelled.worker.fail(cancelled.job, of(8))).status).toBe(200);
  await moveToLastMonth(ids);
  expect(await linesOf(ids)).toEqual([]);
  const nothing = { records: 0, total_cost_usd: 0, gpu_hours_total: 0, unbilled_gpu_hours: 0 };
  for (const period of [last, open]) {
    expect(usageOf(await readSummary(forge.user, period))).toEqual(nothing);
  }

  forge.own("temporal").signal("SIGCONT");
  for (const id of ids) await untilEnded(forge.user, id, 60_000);
  await waitFor("a line for each", async () => (await linesOf(ids)).length >= 3);
  // An hour of this GPU costs 1.25 USD.
  const line = { month: open, is_billed: true, unbilled_gpu_hours: expect.closeTo(0, 6) };
  expect(await linesOf(ids)).toEqual([
    {
      ...{ ...line, job_id: completedId, cost_usd: 2.5, gpu_hours: 2 },
      unbilled_gpu_hours: expect.closeTo(4, 1),
    },
    { ...line, job_id: failedId, cost_usd: 1.25, gpu_hours: 1 },
    {
      ...{ ...line, job_id: cancelledId, cost_usd: 0, gpu_hours: 0, is_billed: false },
      unbilled_gpu_hours: 8,
    },
  ]);

  const summary = await readSummary(forge.user, open);
  expect(usageOf(summary)).toEqual({
    ...{ records: 2, total_cost_usd: 3.75, gpu_hours_total: 3 },
    unbilled_gpu_hours: expect.closeTo(12, 1),
  });
  expect(summary.estimated_invoice.total_usd).toBe(3.75);
  expect(usageOf(await readSummary(forge.user, last))).toEqual(nothing);
  for (const [period, total_cost_usd] of [
    [open, 3.75],
    [last, 0],
  ] as const) {
    const daily = await forge.user.get(`/api/billing/daily?period=${period}`);
    expect(daily).toMatchObject({ total_cost_usd });
  }
  const billed = [completedId, failedId].sort();
  expect([await inCsv(open), await inCsv(last)]).toEqual([billed, []]);
  await waitFor("the export", () => inFiles().length >= 2);
  expect(inFiles()).toEqual(billed);
  expect(await recomputeCheck(forge)).toMatchObject({ code: 0 });
}, 120_000);
