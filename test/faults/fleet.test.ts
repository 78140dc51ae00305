import { SimulatedFleet } from "../../dev/simulator/fleet";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";

const TIMEOUT_S = 5;
/**
 * JOBS is the number of jobs. MANY multiplies the number of workers. Both are greater in `npm run
 * test:slow`.
 */
const [JOBS, MANY] = process.env.TEST_SLOW ? [200, 2] : [60, 1];

interface Shown {
  worker_id: string;
  error_code: string | null;
}

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S),
    FORGE_CANCEL_GRACE_S: "2",
    FORGE_ASSIGNMENT_TIMEOUT_S: "3",
    FORGE_DEAF_AFTER_S: "6",
  });
});

afterAll(async () => {
  await forge?.stop();
});

test("a fleet of crashing, silent, unresponsive, lying and repeating workers ends every job exactly once", async () => {
  const fleet = new SimulatedFleet(
    {
      normal: 6 * MANY,
      slow: 2 * MANY,
      flapping: 3 * MANY,
      deaf: 2 * MANY,
      zombie: 2 * MANY,
      double: 2 * MANY,
      liar: 2 * MANY,
    },
    {
      apiUrl: forge.stack.apiUrl,
      workerKey: forge.stack.keys.workerKey,
      heartbeatMs: 500,
      waitS: 5,
      workMs: 150,
      silenceMs: (TIMEOUT_S + 3) * 1000,
    },
  );
  await fleet.start();
  const jobs = await Promise.all(
    Array.from({ length: JOBS }, async (_, n) => {
      const { job_id } = await forge.user.submit("audit", { ...AUDIT, priority: n % 3 });
      if (n % 10 > 0) return { job_id, cancelled: false };
      const { status } = await forge.user.call("POST", `/api/jobs/${job_id}/cancel`);
      return { job_id, cancelled: status === 202 };
    }),
  );
  const ends: Record<string, number> = {};
  for (const { job_id, cancelled } of jobs) {
    const job = await untilEnded(forge.user, job_id, 90_000);
    const end = job.error_code ?? job.status;
    ends[end] = (ends[end] ?? 0) + 1;
    if (cancelled) expect(end).toBe("cancelled");
    else expect(["completed", "worker_lost"]).toContain(end);
  }
  // The fleet has enough reliable workers: most of the jobs complete within three attempts.
  expect(ends.completed).toBeGreaterThan(JOBS * 0.75);
  expect(fleet.tally.crashes).toBeGreaterThan(0);
  expect(fleet.tally.refused).toBeGreaterThan(0);
  await waitFor("the unresponsive ones to be detected", async () => {
    const { workers } = await forge.user.get<{ workers: Shown[] }>("/api/workers?limit=200");
    const deaf = workers.filter((worker) => worker.worker_id.startsWith("sim-deaf"));
    return deaf.every((worker) => worker.error_code === "unresponsive");
  });
  await fleet.stop();
  await forge.proveInvariants();
}, 180_000);
