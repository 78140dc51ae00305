import { join } from "node:path";
import { sayOnStderr as say } from "../../stack/say";
import { canHaveHatchet, HatchetServer } from "./hatchet-server";
import type { Stage } from "./stage";

/** A job queue or workflow engine that P1 compares Forge with. */
interface Queue {
  name: string;
  url: string;
  /** Whether it runs many times as many jobs per second as Forge. */
  fast: boolean;
  stop(): Promise<void>;
}

/** Queues that are libraries: they need only Postgres. */
const LIBRARIES = [
  { name: "graphile-worker", script: "bare-graphile-worker.js" },
  { name: "pg-boss", script: "bare-pg-boss.js" },
  { name: "DBOS", script: "bare-dbos.js" },
];

export async function startQueues(stage: Stage): Promise<Queue[]> {
  const libraries = LIBRARIES.map(async ({ name, script }) => {
    const { address, pid } = await stage.startPeer(script, await stage.createPeerDatabase(name));
    return { name, url: address, fast: true, stop: async () => void process.kill(pid, "SIGKILL") };
  });
  if (canHaveHatchet()) return await Promise.all([...libraries, startHatchet(stage)]);
  say("Hatchet is left out: Go, which builds its server, is not installed");
  return await Promise.all(libraries);
}

async function startHatchet(stage: Stage): Promise<Queue> {
  const name = "Hatchet";
  const databaseUrl = await stage.createPeerDatabase(name);
  const server = await HatchetServer.start(join(stage.home, "hatchet"), databaseUrl, say);
  stage.stopLater(server.process);
  const { address, pid } = await stage.startPeer("bare-hatchet.js", "", server.clientEnvironment);
  const stop = async (): Promise<void> => {
    process.kill(pid, "SIGKILL");
    await server.process.stop();
  };
  return { name, url: address, fast: false, stop };
}
