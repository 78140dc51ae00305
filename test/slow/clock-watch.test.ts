/**
 * Processes detect that the database's clock was set (a step) by comparing it with their monotonic
 * time. No server runs, because the server would record the steps, too.
 */

import { uptime } from "node:os";
import type pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { ClockWatch } from "../../services/clock/clock-watch";
import { FleetMonitor } from "../../services/fleet/fleet-monitor";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { useSettableClock } from "../support/settable-clock";

const DAY_S = 86_400;
const HOUR_S = 3_600;
const GRACE_S = 4;

let forge: Forge;
let setClock: (byS: number) => Promise<void>;
/** The ids of two running jobs. */
let jobs: string[];
/** How far the clock is ahead, in seconds. */
let aheadS = 0;

beforeAll(async () => {
  const grace = { FORGE_DEADLINE_GRACE_S: String(GRACE_S) };
  forge = await startForge(grace, { own: ["server"] });
  setClock = await useSettableClock(forge);
  jobs = [await begin("one"), await begin("other")];
  await Promise.all(forge.servers().map((server) => server.kill()));
});

afterAll(async () => {
  await forge?.stop();
});

async function begin(workerId: string): Promise<string> {
  const worker = await forge.worker(workerId);
  const { job_id: jobId } = await forge.user.submit("audit", { ...AUDIT, timeout_s: HOUR_S });
  await worker.take();
  return jobId;
}

async function step(byS: number): Promise<void> {
  aheadS += byS;
  await setClock(aheadS);
}

/** A process whose monotonic time the test controls. */
class Process {
  private aheadS = 0;
  readonly watch: ClockWatch;

  constructor(pool: pg.Pool = forge.ctx.pool) {
    this.watch = new ClockWatch(pool, forge.ctx.logger, () => (uptime() + this.aheadS) * 1000);
  }

  /** Advances the process's monotonic time, and checks the clock. */
  async lives(s: number): Promise<void> {
    this.aheadS += s;
    await this.watch.check();
  }
}

async function start(count: number): Promise<Process[]> {
  const processes = Array.from({ length: count }, () => new Process());
  for (const { watch } of processes) await watch.check();
  return processes;
}

/** The steps recorded during `work`, in whole seconds. */
async function recordedBy(work: () => Promise<unknown>): Promise<number[]> {
  const read = () =>
    all<{ by_s: number }>(forge.ctx.pool, "select by_s from clock_steps order by step_id");
  const { length } = await read();
  await work();
  return (await read()).slice(length).map(({ by_s: byS }) => Math.round(byS));
}

/** Advances the time of the database and of these processes, minute by minute. */
async function pass(minutes: number, processes: Process[]): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    await step(60);
    for (const process of processes) await process.lives(60);
  }
}

test("a step that many processes see is recorded once", async () => {
  const processes = await start(3);
  const lookAtOnce = () => Promise.all(processes.map(({ watch }) => watch.check()));
  const recorded = await recordedBy(async () => {
    for (const byS of [DAY_S, -DAY_S]) {
      await step(byS);
      await lookAtOnce();
    }
    await lookAtOnce();
  });
  expect(recorded).toEqual([DAY_S, -DAY_S]);
});

test.each([4, -4])("small steps of %i s add up until they are detected", async (byS) => {
  const processes = await start(2);
  const recorded = await recordedBy(async () => {
    for (let n = 0; n < 8; n++) {
      await step(byS);
      for (const { watch } of processes) await watch.check();
    }
  });
  expect(recorded).toEqual(Array(4).fill(2 * byS));
});

test("a process whose own time stopped records no step while another process kept running", async () => {
  const [runs, stands] = (await start(2)) as [Process, Process];
  const { revision } = stands.watch;
  const recorded = await recordedBy(async () => {
    await pass(60, [runs]);
    await stands.watch.check();
    await pass(1, [runs, stands]);
  });
  expect(recorded).toEqual([]);
  // The stopped process (`stands`) can't know for how long its monotonic time stood still. So its
  // next check of the clock increases `revision`, as if the clock had been set.
  expect(stands.watch.revision).toBeGreaterThan(revision);
});

test("a process whose own time stopped ends no job before the grace period, however long another one kept running", async () => {
  const [runs, stands] = (await start(2)) as [Process, Process];
  const { ctx } = forge;
  const [one, other] = jobs;
  const isOver = (jobId: string | undefined) =>
    maybeOne(ctx.pool, "select from jobs where job_id = $1 and error_code = 'timeout'", [jobId]);
  const traffic = { lastRequestMs: ctx.clock.nowMs() };
  const monitor = new FleetMonitor({ ...ctx, clockWatch: stands.watch, traffic });
  const until =
    "update attempts set deadline_at = now() + make_interval(secs => $2) where job_id = $1";
  await execute(ctx.pool, until, [other, HOUR_S]);
  await execute(ctx.pool, until, [one, 0]);
  monitor.start();
  try {
    await waitFor("the monitor to have been there for the grace", () => isOver(one));
    await monitor.stop();
    await step(2 * HOUR_S);
    await runs.lives(2 * HOUR_S);
    const since = performance.now();
    monitor.start();
    await waitFor("the other job to be over", () => isOver(other));
    expect(performance.now() - since).toBeGreaterThanOrEqual(GRACE_S * 1_000);
  } finally {
    await monitor.stop();
  }
});

test("pauses that are too short to be a step don't add up to one while another process kept running", async () => {
  const [runs, pauses] = (await start(2)) as [Process, Process];
  const recorded = await recordedBy(async () => {
    for (let n = 0; n < 5; n++) {
      await step(4);
      await runs.lives(4);
      await pauses.watch.check();
    }
  });
  expect(recorded).toEqual([]);
});

test("a process that started meanwhile can't rule out a step, nor can one that has ended", async () => {
  const [gone, seeing] = (await start(2)) as [Process, Process];
  await pass(2, [gone, seeing]);
  const recorded = await recordedBy(async () => {
    await step(3_600);
    await start(1);
    await seeing.watch.check();
  });
  expect(recorded).toEqual([3_600]);
});

test("a step back while all processes are down is recorded once at their start, and hides no later step", async () => {
  const [gone] = (await start(1)) as [Process];
  await pass(60, [gone]);
  await step(-1_800);
  const processes = [new Process(), new Process()];
  const back = await recordedBy(() => Promise.all(processes.map(({ watch }) => watch.check())));
  expect(back).toHaveLength(1);
  expect(Math.abs((back[0] ?? 0) + 1_800)).toBeLessThan(5);
  const [seeing] = processes as [Process, Process];
  const recorded = await recordedBy(async () => {
    await step(1_800);
    await seeing.watch.check();
  });
  expect(recorded).toEqual([1_800]);
});

test("a transaction is retried if the clock was set right before it and the step is recorded during it", async () => {
  const [process] = (await start(1)) as [Process];
  const recorded = await recordedBy(async () => {
    await step(DAY_S);
    let works = 0;
    await process.watch.transaction(async () => {
      works += 1;
    });
    expect(works).toBe(1);
  });
  expect(recorded).toEqual([DAY_S]);
});

/**
 * A connection pool for one process. After a call of `freezeNext`, the next connection that
 * acquires the lock for clock steps freezes: it runs no further statement until `goOn` is called.
 */
function freezing(pool: pg.Pool) {
  let isAsked = false;
  const freezeNext = (): void => {
    isAsked = true;
  };
  let goOn = (): void => undefined;
  let freeze = (): void => undefined;
  const thawed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const frozen = new Promise<void>((resolve) => {
    freeze = resolve;
  });
  const freezingClient = (client: pg.PoolClient): pg.PoolClient => {
    let isHolding = false;
    const query = async (given: pg.QueryConfig | string): Promise<unknown> => {
      if (isHolding) {
        isHolding = false;
        freeze();
        await thawed;
      }
      const answer = await client.query(given);
      isHolding = isAsked && JSON.stringify(given).includes("pg_advisory_xact_lock");
      return answer;
    };
    return new Proxy(client, {
      get(target, key) {
        if (key === "query") return query;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  const proxy = new Proxy(pool, {
    get(target, key) {
      if (key === "connect") return async () => freezingClient(await target.connect());
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { pool: proxy, frozen, freezeNext, goOn };
}

test("the transaction of a process that freezes while it records a step is ended, and another process records it", async () => {
  const { pool, frozen, freezeNext, goOn } = freezing(forge.ctx.pool);
  const [holder, other] = [new Process(pool), new Process()];
  for (const { watch } of [holder, other]) await watch.check();
  const recorded = await recordedBy(async () => {
    await step(DAY_S);
    freezeNext();
    const look = holder.watch.check().then(
      () => "looked",
      () => "ended",
    );
    await frozen;
    await other.watch.check();
    goOn();
    expect(await look).toBe("ended");
    // The process continues as if it had not been frozen.
    await holder.watch.check();
  });
  expect(recorded).toEqual([DAY_S]);
});
