import { type Answer, ApiClient, type Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import type { Forge } from "./forge";
import { untilEnded } from "./jobs";
import { createTenant, type Tenant } from "./tenants";
import type { TestWorker } from "./test-worker";

export interface Budget {
  cap_usd: number | null;
  state: string;
  spent_usd: number;
  committed_usd: number;
  remaining_usd: number | null;
}

interface Refusal {
  error: { code: string; message: string; details: Record<string, number> };
}

export type Submitted = Job & Partial<Refusal> & { warnings?: { code: string; message: string }[] };

export const readBudget = async (user: ApiClient): Promise<Budget> =>
  (await user.get<{ budget: Budget }>("/api/billing/budget")).budget;

export async function setCap(user: ApiClient, capUsd: number): Promise<void> {
  const answer = await user.call("PUT", "/api/billing/budget", { cap_usd: capUsd });
  if (answer.status !== 200) throw new Error(`PUT budget: ${JSON.stringify(answer.body)}`);
}

/** Uploads a dataset with `rows` rows, so that the cost of its audit is known in advance. */
export async function uploadRows(user: ApiClient, rows: number): Promise<string> {
  const response = await fetch(`${user.baseUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": user.key, "content-type": "application/x-ndjson" },
    body: '{"q": "why?"}\n'.repeat(rows),
  });
  return ((await response.json()) as { dataset_uri: string }).dataset_uri;
}

/**
 * Submits the same body `count` times at once, to the servers in turn. `keyOf` gives each
 * submission its idempotency key; without `keyOf` they have none.
 */
export async function submitAtOnce(
  users: ApiClient[],
  count: number,
  path: string,
  body: unknown,
  keyOf?: (n: number) => string,
): Promise<{ accepted: Submitted[]; refused: Answer<Submitted>[]; answers: Answer<Submitted>[] }> {
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const headers: Record<string, string> = keyOf ? { "idempotency-key": keyOf(n) } : {};
      const user = users[n % users.length] as ApiClient;
      return await user.call<Submitted>("POST", path, body, headers);
    }),
  );
  return {
    accepted: answers.filter(({ status }) => status === 201).map((answer) => answer.body),
    refused: answers.filter(({ status }) => status !== 201),
    answers,
  };
}

/** The worker completes `count` jobs, one after the other. Returns after all of them are billed. */
export async function doJobs(
  user: ApiClient,
  worker: TestWorker,
  count: number,
  metrics: Record<string, number>,
): Promise<void> {
  for (let n = 0; n < count; n++) {
    const job = await worker.take();
    await waitFor("the result to be taken", async () => {
      return (await worker.complete(job, { metrics })).status === 200;
    });
    await untilEnded(user, job.job_id);
  }
}

export interface BudgetTenant extends Tenant {
  /** For each server, a client of the tenant's user. */
  users: ApiClient[];
  budgetWorker: TestWorker;
}

/** A tenant with its own worker, and with a client for each of two servers. */
export async function budgetTenantOf(
  forge: Forge,
  id: string,
  otherUrl: string,
): Promise<BudgetTenant> {
  const tenant = await createTenant(forge, id);
  const budgetWorker = tenant.worker(`worker-of-${id}`);
  await budgetWorker.register();
  budgetWorker.startHeartbeats();
  const users = [tenant.user, new ApiClient(otherUrl, tenant.user.key)];
  return { ...tenant, users, budgetWorker };
}
