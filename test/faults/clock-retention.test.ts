/** Retention periods stay correct although the database's clock is set forward. */

import { waitFor } from "../../dev/stack/wait";
import { execute, maybeOne } from "../../platform/postgres/pool";
import { reserveDataset } from "../../services/artifacts/dataset-uploads";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { untilServerWaits, withLock } from "../support/locks";
import { useSettableClock } from "../support/settable-clock";

const DAY_S = 86_400;
const KEEP_DAYS = 10;
/**
 * How far the clock is set forward. Longer than each retention period: by this clock, even new data
 * seems old enough to be deleted.
 */
const STEP_DAYS = 60;

let forge: Forge;
let setClock: (byS: number) => Promise<void>;

beforeAll(async () => {
  forge = await startForge({ FORGE_SWEEP_INTERVAL_S: "0.3" }, { own: ["server"] });
  setClock = await useSettableClock(forge);
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

async function upload(): Promise<string> {
  const response = await fetch(`${forge.user.baseUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "application/x-ndjson" },
    body: '{"q": "why?"}\n',
  });
  const { artifact_id: id } = (await response.json()) as { artifact_id: string };
  return id;
}

const isDeleted = async (id: string): Promise<boolean> =>
  (await forge.user.get<{ deleted_at: string | null }>(`/api/artifacts/${id}`)).deleted_at !== null;

async function submitWithKey(key = "once"): Promise<string> {
  const headers = { "idempotency-key": key };
  const { body } = await forge.user.call<{ job_id: string }>(
    "POST",
    "/api/jobs/audit",
    AUDIT,
    headers,
  );
  return body.job_id;
}

const countRows = async (table: string): Promise<number> =>
  (await maybeOne<{ n: number }>(forge.ctx.pool, `select count(*) as n from ${table}`))?.n ?? 0;

async function age(id: string, days: number): Promise<void> {
  const made = "update artifacts set created_at = now() - make_interval(days => $2)";
  await execute(forge.ctx.pool, `${made} where artifact_id = $1`, [id, days]);
}

async function untilExpired(id: string): Promise<void> {
  await waitFor("the retention rule to be applied", () => isDeleted(id));
}

test("a step forward deletes nothing early, and data that is really old is deleted", async () => {
  const { ctx, user } = forge;
  await forge.worker("seen");
  const [young, old] = [await upload(), await upload()];
  const jobId = await submitWithKey();
  const storageId = "raw_unfinished";
  const owner = "select user_id from artifacts where artifact_id = $1";
  const { user_id: userId } = (await maybeOne<{ user_id: string }>(ctx.pool, owner, [young])) ?? {
    user_id: "",
  };
  await reserveDataset(ctx.pool, { storageId, userId, uri: "forge://x", createdBy: "me" });
  const events = await countRows("change_events");
  const rules = { rules: [{ kind: "raw_dataset", keep_days: KEEP_DAYS }] };
  expect((await user.call("PUT", "/api/retention", rules)).status).toBe(200);

  await setClock(STEP_DAYS * DAY_S);
  await waitFor("the step to be recorded", () => maybeOne(ctx.pool, "select from clock_steps"));
  await age(old, STEP_DAYS + KEEP_DAYS + 1);
  await untilExpired(old);
  const unfinished = "select from artifacts where artifact_id = $1";
  const kept = {
    artifact: !(await isDeleted(young)),
    job: await submitWithKey(),
    events: (await countRows("change_events")) >= events,
    upload: (await maybeOne(ctx.pool, unfinished, [storageId])) !== undefined,
  };
  expect(kept).toEqual({ artifact: true, job: jobId, events: true, upload: true });

  // Backdate a new dataset by KEEP_DAYS + 1 days, and the step by 30 days. The dataset is then
  // newer than the step, so the step must not reduce the dataset's age.
  const later = await upload();
  await age(later, KEEP_DAYS + 1);
  await execute(ctx.pool, "update clock_steps set seen_at = seen_at - interval '30 days'");
  await untilExpired(later);
}, 120_000);

test("an idempotency key is not reused between a step forward and its recording", async () => {
  const jobId = await submitWithKey("between");
  const retried = await withLock(forge, "lock table clock_steps in share mode", [], async () => {
    await setClock(2 * STEP_DAYS * DAY_S);
    const answer = submitWithKey("between");
    await untilServerWaits(forge);
    return { answer };
  });
  expect(await retried.answer).toBe(jobId);
});
