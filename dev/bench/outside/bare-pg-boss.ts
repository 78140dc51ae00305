import { EventEmitter, once } from "node:events";
import PgBoss from "pg-boss";
import { Completions } from "./completions";
import { failPeer, POOL, serveQueue, WORKERS } from "./serve-peer";

const QUEUE = "audit";

/**
 * Jobs of pg-boss, each fetched and completed by one of 16 loops. Its own workers ask twice a second; these ask
 * at once when there is a job, and not at all when there is none, so that they cost the others nothing.
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
    if (id === null) throw new Error("pg-boss took no job");
    open += 1;
    submitted.emit("job");
    await completions.of(id);
  });
}

main().catch(failPeer);
