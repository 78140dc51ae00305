import { join } from "node:path";
import { sayOnStderr as say } from "../../stack/say";
import { canHaveHatchet, HatchetServer } from "./hatchet-server";
import type { Stage } from "./stage";

/** A job queue or workflow engine that P1 compares Forge with. */
export interface Queue {
  name: string;
  url: string;
}

/** Queues that are libraries: they need only Postgres. */
const LIBRARIES = [
  { name: "graphile-worker", script: "bare-graphile-worker.js" },
  { name: "pg-boss", script: "bare-pg-boss.js" },
  { name: "DBOS", script: "bare-dbos.js" },
];

/** Runs `measure` with the queues that are libraries, and stops them. */
export async function withLibraries<T>(
  stage: Stage,
  measure: (queues: Queue[]) => Promise<T>,
): Promise<T> {
  try {
    const started = LIBRARIES.map(async ({ name, script }) => {
      const peer = await stage.startPeer(script, await stage.createPeerDatabase(name));
      return { name, url: peer.address };
    });
    return await measure(await Promise.all(started));
  } finally {
    stage.stopPeers(LIBRARIES.map(({ script }) => script));
  }
}

/**
 * Runs `measure` with Hatchet, and stops it. Returns undefined if its server can't be built, which
 * needs Go.
 */
export async function withHatchet<T>(
  stage: Stage,
  measure: (queue: Queue) => Promise<T>,
): Promise<T | undefined> {
  if (!canHaveHatchet()) {
    say("Hatchet is left out: Go, which builds its server, is not installed");
    return undefined;
  }
  const name = "Hatchet";
  const script = "bare-hatchet.js";
  const home = join(stage.home, "hatchet");
  const databaseUrl = await stage.createPeerDatabase(name);
  try {
    const onSpawn = stage.stopLater;
    const server = await HatchetServer.start({ home, databaseUrl, say, onSpawn });
    const peer = await stage.startPeer(script, "", server.clientEnvironment);
    return await measure({ name, url: peer.address });
  } finally {
    stage.stopPeers([script]);
    await stage.stopPeerServers();
  }
}
