import { EventEmitter, once } from "node:events";
import PgBoss from "pg-boss";
import { Completions } from "./completions";
import { failPeer, POOL, serveQueue, WORKERS } from "./serve-peer";

const QUEUE = "audit";

/**
 * pg-boss jobs, fetched and completed by 16 loops, because pg-boss's own workers poll at most twice
 * a second. The loops fetch without a pause until all submitted jobs have completed. Then they wait
 * for the next submission without polling: polling would take CPU time from the other peers.
 */
async function main(): Promise<void> {
  const boss = new PgBoss({ connectionString: process.argv[2] ?? "", max: POOL });
  boss.on("error", failPeer);
  await boss.start();
  await boss.createQueue(QUEUE);
  const completions = new Completions();
  const submitted = new EventEmitter().setMaxListeners(WORKERS);
  let open = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      if (open === 0) await once(submitted, "job");
      const [job] = await boss.fetch(QUEUE);
      if (!job) continue;
      await boss.complete(QUEUE, job.id);
      open -= 1;
      completions.done(job.id);
    }
  };
  for (let n = 0; n < WORKERS; n++) work().catch(failPeer);
  serveQueue(async () => {
    const id = await boss.send(QUEUE, { dataset_uri: "s3://bucket/data.parquet" });
    if (id === null) throw new Error("pg-boss did not accept the job");
    open += 1;
    submitted.emit("job");
    await completions.of(id);
  });
}

main().catch(failPeer);
