import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../platform/config/config";
import { createLogger } from "../../platform/logger";
import { closeContext, createContext } from "../../services/context";
import { saySilently } from "../stack/say";
import { Stack } from "../stack/stack";
import { measureDispatchLatency, quantile } from "./dispatch-latency";
import { measureSdkOverhead } from "./sdk-overhead";
import { type Load, type Loads, measureWaitingFleet } from "./waiting-fleet";
import { measureWorkflowCost } from "./workflow-cost";

const MAX_RATIO = 1.4;
const MAX_P50_MS = 15;
/** Highest accepted ratio of Forge's CPU and memory to those of a bare server. */
const MAX_LOAD = 2;
/** Highest accepted ratio of an SDK's time to that of its HTTP library alone. */
const MAX_SDK = 1.3;

/** Raises the rate limit: the benchmark sends more requests than the default allows. */
const UNLIMITED = { FORGE_RATE_LIMIT_PER_MINUTE: "1000000", FORGE_RATE_LIMIT_BURST: "100000" };

/**
 * The short form is a smoke test. Few jobs on a busy machine give noisy numbers, so the limits are
 * wider. With few workers, most of a process's CPU use is its idle load, so the short form compares
 * only the CPU use that the workers add. It compares Forge with the bare server in several windows
 * and reports the window with the median ratio.
 */
const SHORT = {
  jobs: 60,
  // A smaller number would let too few workflows run at the same time. The ratio to bare Temporal
  // would then compare latency instead of throughput.
  workflows: 100,
  rounds: 3,
  slack: 1.5,
  slackMs: 3,
  statusCalls: 200,
  workers: 150,
  idleWindows: 1,
  windows: 7,
  // The interval is shorter than in the full form, because the measured windows are shorter too.
  // Each window must have enough heartbeats.
  heartbeatS: 1,
  windowS: 1,
  excludeIdle: true,
};
const FULL = {
  jobs: 300,
  workflows: 350,
  rounds: 7,
  slack: 1,
  slackMs: 1,
  statusCalls: 1_000,
  workers: 1_000,
  idleWindows: 3,
  windows: 1,
  heartbeatS: 5,
  windowS: 30,
  excludeIdle: false,
};

/**
 * `npm run bench:parts [-- --short]`: measures components of Forge. Exits 1 if any value exceeds
 * its limit.
 */
async function main(): Promise<void> {
  const scale = process.argv.includes("--short") ? SHORT : FULL;
  const { jobs, workflows, rounds, slack, slackMs } = scale;
  const home = mkdtempSync(join(tmpdir(), "forge-bench-"));
  const stack = new Stack({ home, agents: 0, say: saySilently, env: UNLIMITED });
  try {
    await stack.start();
    const { config } = loadConfig({
      FORGE_DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      FORGE_STORE_DIR: stack.storeDir,
    });
    const ctx = createContext(config, createLogger("silent"));
    try {
      const latencies = await measureDispatchLatency(stack, ctx.pool, Math.min(jobs, 200));
      const p50 = quantile(latencies, 0.5);
      report(
        `submission to next_job's answer, worker waiting: p50 ${p50.toFixed(1)} ms, ` +
          `p95 ${quantile(latencies, 0.95).toFixed(1)} ms (${latencies.length} jobs)`,
        p50 < MAX_P50_MS * slackMs,
        `p50 under ${MAX_P50_MS * slackMs} ms`,
      );
      await reportSdks(stack, scale);
      await reportFleet(stack, scale);
      await stack.server?.stop();
      const { bareMs, jobMs, ratio } = await measureWorkflowCost(ctx, workflows, rounds);
      report(
        `a job's workflow with its final writes ${jobMs.toFixed(1)} ms, a bare one with one activity ` +
          `${bareMs.toFixed(1)} ms: ${ratio.toFixed(2)} times (${workflows} of each, 50 in flight)`,
        ratio <= 1 + (MAX_RATIO - 1) * slack,
        `at most ${(1 + (MAX_RATIO - 1) * slack).toFixed(2)} times`,
      );
    } finally {
      await closeContext(ctx);
    }
  } finally {
    await stack.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

async function reportSdks(stack: Stack, { statusCalls, slack }: typeof FULL): Promise<void> {
  const overheads = await measureSdkOverhead(stack, statusCalls);
  const bound = 1 + (MAX_SDK - 1) * slack;
  for (const [client, { sdk_ms, bare_ms }] of Object.entries(overheads)) {
    report(
      `${statusCalls} status calls by ${client} ${sdk_ms.toFixed(0)} ms, by its HTTP library alone ` +
        `${bare_ms.toFixed(0)} ms: ${(sdk_ms / bare_ms).toFixed(2)} times`,
      sdk_ms / bare_ms <= bound,
      `at most ${bound.toFixed(2)} times`,
    );
  }
}

async function reportFleet(stack: Stack, scale: typeof FULL): Promise<void> {
  const { workers, slack, excludeIdle } = scale;
  const apiUrl = await stack.startAnotherServer();
  const counted = (load: Load): number => load.cpuShare - (excludeIdle ? load.idleShare : 0);
  const ratioOf = ({ forge, bare }: Loads): number => counted(forge) / counted(bare);
  const windows = await measureWaitingFleet(stack, apiUrl, scale);
  const middle = windows.sort((a, b) => ratioOf(a) - ratioOf(b))[Math.floor(windows.length / 2)];
  if (!middle) throw new Error("no window was measured");
  const { forge, bare } = middle;
  const cpu = ratioOf(middle);
  const memory = forge.rssMb / bare.rssMb;
  const bound = MAX_LOAD * slack;
  report(
    `${workers} workers polling and heartbeating: CPU ${cpuOf(forge)}, a bare node:http server ` +
      `${cpuOf(bare)}: ${excludeIdle ? "added load" : "total load"} ${cpu.toFixed(2)} times; ` +
      `memory ${forge.rssMb.toFixed(0)} MB, ${bare.rssMb.toFixed(0)} MB: ${memory.toFixed(2)} times`,
    cpu <= bound && memory <= bound,
    `at most ${bound} times`,
  );
  await Promise.all(stack.otherServers.map((server) => server.stop()));
}

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;

const cpuOf = (load: Load): string => `${percent(load.cpuShare)} (idle ${percent(load.idleShare)})`;

function report(measured: string, holds: boolean, limit: string): void {
  process.stdout.write(`${holds ? "ok  " : "OVER"} ${measured}; limit: ${limit}\n`);
  if (!holds) process.exitCode = 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
