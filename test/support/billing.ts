import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ApiClient } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";
import type { Forge } from "./forge";
import { backdateStart, untilEnded } from "./jobs";
import type { TestWorker } from "./test-worker";

/** The fields of a billing record that tests use. */
export interface BillingRecord {
  job_id: string;
  job_type: string;
  state: string;
  metrics: Record<string, number>;
  unit_costs: Record<string, number>;
  cost_breakdown: Record<string, number>;
  total_cost_usd: number;
  rate_card: string;
  rate_card_version: number;
  formula: string;
  flags: string[];
  attempts: {
    attempt: number;
    outcome: string;
    billed: boolean;
    gpu_hours: number;
    gpu_hours_measured: number;
    gpu_hours_reported: number | null;
  }[];
}

export interface Summary {
  period: string;
  total_cost_usd: number;
  by_job_type: Record<string, number>;
  by_tag: Record<string, number>;
  by_pipeline: Record<string, number>;
  records: number;
  gpu_hours_total: number;
  tokens_total: number;
  unbilled_gpu_hours: number;
  accruing_usd: number;
  storage: { gb_months: number; amount_usd: number };
  estimated_invoice: {
    lines: { kind: string; job_type: string | null; amount_usd: number }[];
    total_usd: number;
  };
  forecast_usd: number;
  budget: { cap_usd: number; state: string; spent_usd: number; committed_usd: number } | null;
  rate_card: string;
}

export const readSummary = async (api: ApiClient, period?: string): Promise<Summary> =>
  await api.get<Summary>(`/api/billing/summary${period ? `?period=${period}` : ""}`);

export const readRecord = async (api: ApiClient, jobId: string): Promise<BillingRecord> =>
  await api.get<BillingRecord>(`/api/billing/records/${jobId}`);

/**
 * Submits a job, pretends that the job ran for `hours`, and completes it with these metrics.
 * @returns the job's billing record.
 */
export async function billed(
  forge: Forge,
  { user, worker }: { user: ApiClient; worker: TestWorker },
  [type, body]: [type: string, body: object],
  metrics: Record<string, unknown>,
  hours = 0,
): Promise<BillingRecord> {
  const { job_id } = await user.submit(type, body);
  const job = await worker.take();
  await backdateStart(forge, job, hours);
  const answer = await worker.complete(job, { metrics });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  await untilEnded(user, job_id);
  return await readRecord(user, job_id);
}

/** Runs `forge-server billing recompute --check`, as an operator does. */
export async function recomputeCheck(
  { stack }: Forge,
  ...more: string[]
): Promise<{ code: number; stdout: string }> {
  const server = join(checkoutRoot(), "dist/bin/forge-server.js");
  const args = [server, "billing", "recompute", "--check", ...more];
  const env = { ...process.env, FORGE_DATABASE_URL: stack.databaseUrl, FORGE_LOG_LEVEL: "silent" };
  return await promisify(execFile)(process.execPath, args, { env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => ({ code: error.code, stdout: error.stdout }),
  );
}
