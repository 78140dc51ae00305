import { Connection } from "@temporalio/client";
import { ManagedProcess } from "./process";
import type { Say } from "./say";
import { temporalBinary } from "./temporal-binary";
import { waitFor } from "./wait";

interface TemporalOptions {
  /** SQLite file for the server's state. Default: in memory. */
  databaseFile?: string;
  port: number;
  uiPort: number;
  logFile: string;
  /**
   * Called as soon as the process has been started, before the server is ready. The caller can then
   * end the process even if the server never becomes ready.
   */
  onSpawn(process: ManagedProcess): void;
}

/**
 * Settings for a Temporal server that is a single process. By default, the dev server limits its
 * rates as if it served one of many shards, and splits each task queue into four partitions. In a
 * single process, the limits only cause delays, and the partitions only cause work
 * (docs/operating.md).
 */
const DYNAMIC_CONFIG: Record<string, number> = {
  "history.transferProcessorMaxPollRPS": 2_000,
  "history.timerProcessorMaxPollRPS": 2_000,
  "matching.numTaskqueueReadPartitions": 1,
  "matching.numTaskqueueWritePartitions": 1,
  "frontend.rps": 100_000,
  "frontend.namespaceRPS": 100_000,
  "matching.rps": 100_000,
  "history.rps": 100_000,
  "frontend.persistenceMaxQPS": 100_000,
  "history.persistenceMaxQPS": 100_000,
  "matching.persistenceMaxQPS": 100_000,
};

const TRIES = 3;

/** Starts a real Temporal server with its UI. */
export async function startTemporal(
  options: TemporalOptions,
  say: Say,
  signal: AbortSignal,
): Promise<ManagedProcess> {
  const program = await temporalBinary(say, signal);
  signal.throwIfAborted();
  for (let tries = 1; ; tries++) {
    const server = spawnTemporal(program, options);
    options.onSpawn(server);
    try {
      await waitForTemporal(`127.0.0.1:${options.port}`, server);
      return server;
    } catch (error) {
      // The server itself chooses ports for its internal services. Try again if another program
      // has taken such a port before the server listens on it.
      const lostPort = !server.alive && /address already in use/.test(server.logTail());
      if (!lostPort || tries === TRIES) throw error;
      say("Another program uses one of Temporal's ports; starting it again …");
    }
  }
}

function spawnTemporal(program: string, options: TemporalOptions): ManagedProcess {
  return ManagedProcess.start({
    name: "temporal",
    program,
    args: [
      "server",
      "start-dev",
      "--ip=127.0.0.1",
      `--port=${options.port}`,
      `--ui-port=${options.uiPort}`,
      ...(options.databaseFile ? inFile(options.databaseFile) : []),
      "--log-level=error",
      ...Object.entries(DYNAMIC_CONFIG).map(
        ([key, value]) => `--dynamic-config-value=${key}=${value}`,
      ),
    ],
    logFile: options.logFile,
  });
}

const inFile = (path: string): string[] => [
  `--db-filename=${path}`,
  "--sqlite-pragma=journal_mode=WAL",
  "--sqlite-pragma=synchronous=NORMAL",
];

/** Waits until the server responds for its default namespace. */
async function waitForTemporal(address: string, process?: ManagedProcess): Promise<void> {
  const probe = async (): Promise<true> => {
    const connection = await Connection.connect({ address, connectTimeout: 2_000 });
    try {
      await connection.workflowService.describeNamespace({ namespace: "default" });
      return true;
    } finally {
      await connection.close();
    }
  };
  await waitFor("Temporal", probe, {
    timeoutMs: 60_000,
    everyMs: 100,
    ...(process ? { process } : {}),
  });
}
