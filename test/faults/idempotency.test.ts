import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../dev/api-client";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

const COPIES = 50;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
});

afterEach(async () => {
  const worker = await forge.worker(`w-${randomUUID()}`);
  for (;;) {
    const job = await worker.next(1);
    if (!job) break;
    await worker.complete(job);
    await untilEnded(forge.user, job.job_id);
  }
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

type Submission = { status: number; body: { job_id: string } } | undefined;

/** Submits a job with this idempotency key. @returns undefined if the connection broke. */
const submit = async (key: string, url = forge.stack.apiUrl): Promise<Submission> =>
  await new ApiClient(url, forge.stack.keys.userKey)
    .call<{ job_id: string }>("POST", "/api/jobs/audit", AUDIT, { "idempotency-key": key })
    .catch(() => undefined);

const countJobs = async (): Promise<number> =>
  (await all(forge.ctx.pool, "select job_id from jobs")).length;

test("50 at once, to two processes, create one job and get 50 equal responses", async () => {
  const other = await forge.stack.startAnotherServer();
  const before = await countJobs();
  const key = randomUUID();
  const answers = await Promise.all(
    Array.from({ length: COPIES }, (_, n) => submit(key, n % 2 ? other : forge.stack.apiUrl)),
  );
  expect(answers.map((answer) => answer?.status)).toEqual(Array(COPIES).fill(201));
  expect(new Set(answers.map((answer) => JSON.stringify(answer?.body))).size).toBe(1);
  expect(await countJobs()).toBe(before + 1);
});

/**
 * The times in ms from the first submission to the kill of the server. The kill comes before,
 * during or after the commit of the job.
 */
const KILLED_AFTER_MS = process.env.TEST_SLOW ? [0, 2, 5, 10, 20, 40] : [5];

test.each(KILLED_AFTER_MS)(
  "50 at once, the server killed %i ms later, create one job",
  async (ms) => {
    const before = await countJobs();
    const key = randomUUID();
    const broken = Promise.all(Array.from({ length: COPIES }, () => submit(key)));
    await sleep(ms);
    await forge.stack.server?.kill();
    const first = (await broken).filter((answer) => answer !== undefined);
    await forge.stack.startServer();
    const again = await Promise.all(Array.from({ length: COPIES }, () => submit(key)));
    const answers = [...first, ...again];
    // A 409 is allowed, because a transaction of the killed process may still be open in Postgres.
    expect(answers.filter((answer) => answer && ![201, 409].includes(answer.status))).toEqual([]);
    const ids = new Set(
      answers.flatMap((answer) => (answer?.status === 201 ? answer.body.job_id : [])),
    );
    expect(ids.size).toBe(1);
    expect(await countJobs()).toBe(before + 1);
  },
);
