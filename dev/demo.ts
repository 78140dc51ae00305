import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig } from "../platform/config/config";
import { createLogger } from "../platform/logger";
import { closeContext, createContext } from "../services/context";
import { runStory } from "./demo/story";
import { checkInvariants } from "./invariants";
import { pythonEnvironment } from "./stack/python";
import { endOrphans } from "./stack/recorded-processes";
import { sayOnStderr as say } from "./stack/say";
import { Stack } from "./stack/stack";

const FAST_FLEET = { FORGE_HEARTBEAT_TIMEOUT_S: "6", HEARTBEAT_INTERVAL: "1" };

async function violationsOf(stack: Stack): Promise<string[]> {
  const { config } = loadConfig({
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
    FORGE_STORE_DIR: stack.storeDir,
  });
  const ctx = createContext(config, createLogger("silent"));
  try {
    return await checkInvariants(ctx);
  } finally {
    await closeContext(ctx);
  }
}

/**
 * `npm run demo`: starts its own stack, runs a pipeline, kills a worker, and stops everything at
 * the end.
 */
async function main(): Promise<void> {
  const home = resolve(process.env.FORGE_HOME ?? ".forge", "demo");
  // A demo that was killed may have left processes running. End them before removing its files.
  endOrphans(home);
  rmSync(home, { recursive: true, force: true });
  const stack = new Stack({ home, agents: 1, env: FAST_FLEET });
  const cleanUp = (): Promise<void> => stack.stop();
  const onSignal = (): void => void cleanUp().then(() => process.exit(130));
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  const started = performance.now();
  try {
    // The worker trains, so it needs PyTorch.
    await pythonEnvironment(say, ["runtime", "train"]);
    await stack.start();
    await runStory(stack, say, () => violationsOf(stack));
    const seconds = Math.round((performance.now() - started) / 1000);
    say(`\nThe demo is done, in ${seconds} s. Stopping everything it started …`);
  } finally {
    await cleanUp();
  }
}

main().catch((error: unknown) => {
  say(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
