/**
 * One tenant runs all attacks at once while another tenant submits jobs. The test measures twice:
 * first without the attacks, then during the attacks. The attacker uses the same cores as the
 * server. The test prints the numbers. docs/threat-model.md lists the remaining gaps.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../../dev/bench/dispatch-latency";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { createTenant, type Tenant } from "../support/tenants";
import type { TestWorker } from "../support/test-worker";

const JOBS = 600;

let forge: Forge;
let neighbour: Tenant;
let worker: TestWorker;
let attacker: ChildProcess | undefined;

beforeAll(async () => {
  forge = await startForge({}, { optimized: true });
  neighbour = await createTenant(forge, "neighbour");
  worker = neighbour.worker("neighbours");
  await worker.register();
  worker.startHeartbeats();
});

afterAll(async () => {
  worker?.stopHeartbeats();
  attacker?.kill("SIGKILL");
  await forge?.stop();
});

interface Measured {
  /** From the submission until the worker has the job, in ms. */
  p50: number;
  p99: number;
  healthzMax: number;
  rssMb: number;
}

async function measure(): Promise<Measured> {
  const latencies: number[] = [];
  const probes: number[] = [];
  const done = new AbortController();
  const probing = (async () => {
    while (!done.signal.aborted) {
      const asked = performance.now();
      await (await fetch(`${forge.stack.apiUrl}/healthz`)).arrayBuffer();
      probes.push(performance.now() - asked);
      await sleep(50);
    }
  })();
  for (let n = 0; n < JOBS; n++) {
    const taken = worker.take(30).then((job) => ({ job, at: performance.now() }));
    await sleep(20);
    const sent = performance.now();
    await neighbour.user.submit("audit", { dataset_uri: "s3://bucket/data.parquet" });
    const { job, at } = await taken;
    latencies.push(at - sent);
    await worker.complete(job);
  }
  done.abort();
  await probing;
  return {
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    healthzMax: Math.max(...probes),
    rssMb: rssMb(),
  };
}

function rssMb(): number {
  const status = readFileSync(`/proc/${forge.stack.server?.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

test("another tenant's jobs still run, /healthz answers within a second, and memory is bounded", async () => {
  await measure();
  const quiet = await measure();
  const mallory = await createTenant(forge, "mallory");
  const began = performance.now();
  attacker = spawn(
    process.execPath,
    [
      join(checkoutRoot(), "dist/test/support/hostile-tenant.js"),
      forge.stack.apiUrl,
      mallory.user.key,
    ],
    { stdio: ["ignore", "pipe", "inherit"], detached: true },
  );
  let answers: Record<string, Record<string, number>> = {};
  createInterface({ input: attacker.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    answers = JSON.parse(line);
  });
  await waitFor(
    "all attacks to run",
    async () =>
      ["streams", "reads", "polls", "pipelines", "bodies"].every(
        (attack) => answers[attack]?.begun,
      ),
    {
      timeoutMs: 120_000,
    },
  );
  const attacked = await measure();
  console.log(JSON.stringify({ quiet, attacked, answers }, null, 1));
  attacker.kill("SIGKILL");
  await once(attacker, "exit");
  const registrations = (answers.workers?.[201] ?? 0) + (answers.registrations?.[201] ?? 0);
  const seconds = (performance.now() - began) / 1000;
  // The maximum is the sum of three terms:
  // - one registration for each of the 1,500 workers,
  // - 10 registrations per second, the rate limit (agent-bridge/register.ts),
  // - one per 2.5 s for each of the 40 loops: a registration above the rate limit is accepted, but
  //   only after a delay of at least 2.5 s.
  expect(registrations).toBeLessThanOrEqual(1_500 + 10 * seconds + 40 * (seconds / 2.5 + 1));
  expect(attacked.healthzMax).toBeLessThan(1_000);
  expect(attacked.rssMb).toBeLessThan(1_024);
  // The goal is at most three times the p99 without attacks. Earlier runs measured 1.5 to 3.0 times
  // (docs/threat-model.md), so there is no margin.
  expect(attacked.p99).toBeLessThan(3 * quiet.p99);
}, 600_000);
