import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../infra/config";
import { closeContext, createContext } from "../../infra/context";
import { createLogger } from "../../infra/logger";
import { saySilently } from "../stack/say";
import { Stack } from "../stack/stack";
import { measureHandOutLatency, quantile } from "./hand-out-latency";
import { measureWorkflowCost } from "./workflow-cost";

const MAX_RATIO = 1.4;
const MAX_P50_MS = 15;

/** Of so few jobs, on a machine that other tests just left, numbers scatter: a smoke test's slack. */
const SHORT = { jobs: 90, rounds: 3, slack: 1.5 };
const FULL = { jobs: 300, rounds: 6, slack: 1 };

/** `npm run bench [-- --short]`: the two numbers that a job's path is held to; exits 1 over either. */
async function main(): Promise<void> {
  const { jobs, rounds, slack } = process.argv.includes("--short") ? SHORT : FULL;
  const home = mkdtempSync(join(tmpdir(), "forge-bench-"));
  const stack = new Stack({ home, agents: 0, say: saySilently });
  try {
    await stack.start();
    const { config } = loadConfig({
      FORGE_DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      FORGE_STORE_DIR: stack.storeDir,
    });
    const ctx = createContext(config, createLogger("silent"));
    try {
      const latencies = await measureHandOutLatency(stack, ctx.pool, Math.min(jobs, 200));
      const p50 = quantile(latencies, 0.5);
      report(
        `submission to next_job's answer, worker parked: p50 ${p50.toFixed(1)} ms, ` +
          `p95 ${quantile(latencies, 0.95).toFixed(1)} ms (${latencies.length} jobs)`,
        p50 < MAX_P50_MS * slack,
        `p50 under ${MAX_P50_MS * slack} ms`,
      );
      await stack.server?.stop();
      const { bareMs, jobMs, ratio } = await measureWorkflowCost(ctx, jobs, rounds);
      report(
        `a job's workflow with its final writes ${jobMs.toFixed(1)} ms, a bare one with one activity ` +
          `${bareMs.toFixed(1)} ms: ${ratio.toFixed(2)} times (${jobs} of each, 50 in flight)`,
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

function report(measured: string, holds: boolean, bound: string): void {
  process.stdout.write(`${holds ? "ok  " : "OVER"} ${measured}; bound: ${bound}\n`);
  if (!holds) process.exitCode = 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
