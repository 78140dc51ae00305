import { ApiClient } from "../../dev/api-client";
import type { Stack } from "../../dev/stack/stack";
import { untilEnded } from "./jobs";
import type { Server } from "./servers";
import { startTestStack, type TestStack } from "./test-stack";
import { TestWorker } from "./test-worker";

/**
 * Postgres, Temporal and a migrated database, without a forge-server: the test starts its own with
 * other settings.
 */
export const startServersOnly = (own: Server[] = []): Promise<TestStack> =>
  startTestStack({ own, env: { FORGE_DATABASE_POOL: "6" } }, async (stack) => {
    await stack.startDatabase();
    if (own.includes("temporal") || !process.env.TEST_TEMPORAL_ADDRESS) await stack.startTemporal();
  });

/** Runs a job to its end with a worker driven by the test. @returns the job's status. */
export async function runJob({ apiUrl, keys }: Stack, workerId: string): Promise<string> {
  const user = new ApiClient(apiUrl, keys.userKey);
  const worker = new TestWorker(new ApiClient(apiUrl, keys.workerKey), workerId);
  await worker.register();
  const { job_id } = await user.submit("audit", { dataset_uri: "s3://b/d.parquet" });
  await worker.complete(await worker.take());
  return (await untilEnded(user, job_id)).status;
}
