import { EventEmitter } from "node:events";
import { Logger, run, type WorkerEvents } from "graphile-worker";
import { Completions } from "./completions";
import { failPeer, POOL, serveQueue, WORKERS } from "./serve-peer";

/** graphile-worker jobs with an empty task. graphile-worker deletes completed jobs. */
async function main(): Promise<void> {
  const completions = new Completions();
  const events: WorkerEvents = new EventEmitter();
  events.on("job:complete", ({ job }) => completions.done(job.id));
  const runner = await run({
    connectionString: process.argv[2] ?? "",
    concurrency: WORKERS,
    maxPoolSize: POOL,
    events,
    logger: new Logger(() => () => undefined),
    noHandleSignals: true,
    taskList: { audit: async () => undefined },
  });
  serveQueue(async () => {
    const { id } = await runner.addJob("audit", { dataset_uri: "s3://bucket/data.parquet" });
    await completions.of(id);
  });
}

main().catch(failPeer);
