import { waitFor } from "../../dev/stack/wait";
import { execute, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, isOffered, untilEnded } from "../support/jobs";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

// `endTest` also makes this test's workers unavailable: they must not get the next test's jobs.
afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const RETRYABLE = { retryable: true };

const untilQueued = (jobId: string, attempt: number) =>
  waitFor(`attempt ${attempt} to be queued`, async () => {
    const queued = "select from attempts where job_id = $1 and attempt = $2 and state = 'queued'";
    return (await maybeOne(forge.ctx.pool, queued, [jobId, attempt])) !== undefined;
  });

test("a retry goes to a worker on which the job has not failed, although the first one is preferred otherwise", async () => {
  // Of equally capable workers, the scheduler prefers the first by id.
  const broken = await forge.worker("a-broken");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const first = await broken.take();
  const whole = await forge.worker("b-whole");
  const there = whole.take(30);
  await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, whole.id));
  await broken.fail(first, RETRYABLE);
  const here = broken.next(5);
  const second = await there;
  expect(second).toMatchObject({ job_id: jobId, attempt: 2 });
  await whole.complete(second);
  await untilEnded(forge.user, jobId);
  expect(await here).toBeUndefined();
});

test("a retry waits for a busy worker, but not for ever", async () => {
  const busy = await forge.worker("b-busy");
  const { job_id: longId } = await forge.user.submit("audit", AUDIT);
  const long = await busy.take();
  const broken = await forge.worker("a-broken");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const first = await broken.take();
  await broken.fail(first, RETRYABLE);
  await untilQueued(jobId, 2);
  // A sweep of the scheduler runs during these 4 s. It must not yet assign the retry to `broken`,
  // the worker on which the first attempt failed.
  expect(await broken.next(4)).toBeUndefined();
  expect(await forge.user.get(`/api/jobs/${jobId}`)).toMatchObject({
    status: "pending",
    pending_reason: { code: "workers_busy" },
  });
  await execute(
    forge.ctx.pool,
    "update attempts set queued_at = queued_at - interval '1 minute' where job_id = $1 and attempt = 2",
    [jobId],
  );
  const second = await broken.take();
  expect(second).toMatchObject({ job_id: jobId, attempt: 2 });
  const groups = "select count(distinct shape)::int as n from attempts where job_id = $1";
  expect(await maybeOne(forge.ctx.pool, groups, [jobId])).toEqual({ n: 1 });
  await broken.complete(second);
  await busy.complete(long);
  for (const id of [jobId, longId]) await untilEnded(forge.user, id);
});

test("with one worker a retry goes back to it at once", async () => {
  const only = await forge.worker("only");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  await only.fail(await only.take(), RETRYABLE);
  const second = await only.take(10);
  expect(second).toMatchObject({ job_id: jobId, attempt: 2 });
  await only.fail(second, RETRYABLE);
  const third = await only.take(10);
  expect(third.attempt).toBe(3);
  await only.complete(third);
  await untilEnded(forge.user, jobId);
});

test("if the job has failed on all workers, any of them may run it", async () => {
  const one = await forge.worker("one");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const first = await one.take();
  const two = await forge.worker("two");
  const there = two.take(30);
  await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, two.id));
  await one.fail(first, RETRYABLE);
  const second = await there;
  const back = one.take(30);
  await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, one.id));
  await two.fail(second, RETRYABLE);
  const third = await back;
  expect(third).toMatchObject({ job_id: jobId, attempt: 3 });
  await one.complete(third);
  await untilEnded(forge.user, jobId);
});
