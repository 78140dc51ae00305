import { readFileSync } from "node:fs";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { refuse } from "../support/refusals";
import type { TestWorker } from "../support/test-worker";

/**
 * The lease of an outbox entry, in seconds. It is longer than any test here takes, so no sweep
 * delivers an entry: only the process that wrote it does.
 */
const LEASE_S = 60;
/**
 * The number of workers. Together they complete more jobs than a process can deliver at once: it
 * makes at most 20 concurrent calls to Temporal.
 */
const WORKERS = 4;
const JOBS_EACH = 7;

let forge: Forge;
let workers: TestWorker[];

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_OUTBOX_FIRST_LEASE_S: String(LEASE_S),
      FORGE_OUTBOX_LEASE_S: String(LEASE_S),
      // With a shorter time, the sweep would soon start the job's workflow. The workflow would read
      // the outcome from the database, and the job would end even without the outcome's delivery.
      FORGE_WORKFLOW_START_S: String(LEASE_S),
    },
    { own: ["server", "temporal"] },
  );
  const ids = Array.from({ length: WORKERS }, (_, n) => `w${n}`);
  workers = await Promise.all(ids.map((id) => forge.worker(id)));
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

test("outcomes beyond the limit of concurrent calls do not wait until their lease expires", async () => {
  const count = WORKERS * JOBS_EACH;
  const jobs = await Promise.all(
    Array.from({ length: count }, () => forge.user.submit("audit", AUDIT)),
  );
  const temporal = forge.own("temporal");
  // Freeze Temporal: no call gets a response, so the calls for all results stay open.
  temporal.signal("SIGSTOP");
  try {
    await Promise.all(
      workers.map(async (worker) => {
        for (let n = 0; n < JOBS_EACH; n++) await worker.complete(await worker.take());
      }),
    );
  } finally {
    temporal.signal("SIGCONT");
  }
  for (const { job_id } of jobs) {
    const job = await untilEnded(forge.user, job_id, (LEASE_S * 1_000) / 3);
    expect(job.status).toBe("completed");
  }
}, 60_000);

const logOfServers = (): string =>
  forge
    .servers()
    .map(({ name }) => readFileSync(forge.stack.logFile(name), "utf8"))
    .join("\n");

test("a row locked in Postgres does not make Temporal look unavailable", async () => {
  const complaints = (): number =>
    logOfServers().match(/Temporal is down|outbox entry not delivered/g)?.length ?? 0;
  const before = complaints();
  const [worker] = workers;
  if (!worker) throw new Error("no worker is left");
  const kept = await forge.user.submit("audit", AUDIT);
  const allow = await refuse(forge, "before delete on outbox", `old.job_id = '${kept.job_id}'`);
  await worker.complete(await worker.take());
  const next = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  expect((await untilEnded(forge.user, next.job_id)).status).toBe("completed");
  expect(complaints()).toBe(before);
  await allow();
  expect((await untilEnded(forge.user, kept.job_id)).status).toBe("completed");
}, 60_000);
