import { artifactPrefix, prefixOfKind } from "../core/artifacts";
import { runPrefix, uploadPrefix } from "../core/attempt-files";
import type { Context } from "../infra/context";
import { type Buried, listBuried, noteBytesRemoved } from "../infra/database/artifact-deletion";
import { dropAbandoned, listAbandoned } from "../infra/database/dataset-uploads";
import { listJobsToSweep, noteSwept, type SweepableJob } from "../infra/database/leftovers";
import { Loop } from "../infra/loop";
import { forEachItem, forEachPage, runEach } from "../infra/run-each";
import type { Part } from "../infra/service";
import { applyRetention } from "./retention";

const BATCH = 100;
/** Rules are in days: they are looked at with each tenth sweep. */
const SWEEPS_PER_RETENTION = 10;

/**
 * Removes from the store what nothing refers to any more: what attempts that did not win have left, the
 * bytes of deleted artifacts, and uploads that their server did not live to end. What is to go is in
 * Postgres until it is gone, so a store that is away, or a crash, only makes it later. From time to time it
 * deletes what is kept for a time, too (retention.ts).
 */
export class Sweeper implements Part {
  readonly name = "sweeper";
  private readonly loop: Loop;
  private sweeps = 0;

  constructor(private readonly ctx: Context) {
    const { intervalS } = ctx.config.sweep;
    this.loop = new Loop("sweep", intervalS * 1000, () => this.sweep(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const isRetentionDue = this.sweeps++ % SWEEPS_PER_RETENTION === 0;
    await runEach([
      ...(isRetentionDue ? [() => applyRetention(this.ctx)] : []),
      () => this.removeDeleted(),
      () => this.removeLeftovers(),
      () => this.removeAbandoned(),
    ]);
  }

  private async removeDeleted(): Promise<void> {
    const { pool, store, config } = this.ctx;
    await forEachPage<Buried>(
      BATCH,
      (after) => listBuried(pool, config.sweep.afterS, after, BATCH),
      async ({ storage_id: id, kind }) => {
        await store.removeAll(prefixOfKind(kind, id));
        await noteBytesRemoved(pool, id);
      },
    );
  }

  private async removeLeftovers(): Promise<void> {
    const { pool, store, config } = this.ctx;
    await forEachPage<SweepableJob>(
      BATCH,
      (after) => listJobsToSweep(pool, config.sweep.afterS, after, BATCH),
      async (job) => {
        for (const prefix of leftoversOf(job)) await store.removeAll(prefix);
        await noteSwept(pool, job.job_id);
      },
    );
  }

  private async removeAbandoned(): Promise<void> {
    const { pool, store, clockWatch } = this.ctx;
    const abandoned = await clockWatch.transaction((db) => listAbandoned(db, BATCH), {
      requireKnownClock: true,
    });
    await forEachItem(abandoned, async ({ storage_id: id, kind }) => {
      await store.removeAll(prefixOfKind(kind, id));
      await dropAbandoned(pool, id);
    });
  }
}

/** Where attempts of a job may have left something: all but its artifact, and its logs. */
const leftoversOf = (job: SweepableJob): string[] => [
  uploadPrefix(job.job_id),
  runPrefix(job.job_id),
  ...job.lost_ids.map((id) => artifactPrefix(job.job_type, id)),
];
