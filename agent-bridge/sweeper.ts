import { artifactPrefix, prefixOfKind } from "../core/artifacts";
import { runPrefix, uploadPrefix } from "../core/attempt-files";
import type { Context } from "../infra/context";
import {
  type Buried,
  buryExpired,
  type Expired,
  listBuried,
  listTenantRules,
  noteBytesRemoved,
} from "../infra/database/artifact-deletion";
import { dropAbandoned, listAbandoned } from "../infra/database/dataset-uploads";
import { deleteOldMetrics } from "../infra/database/job-metrics";
import { listJobsToSweep, noteSwept, type SweepableJob } from "../infra/database/leftovers";
import { deleteOldChangeEvents } from "../infra/database/tenant-events";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";

const BATCH = 100;
/** Rules are in days: they are looked at with each tenth sweep. */
const SWEEPS_PER_RETENTION = 10;
/** Swept side by side: a bucket answers each question some time later. */
const AT_ONCE = 8;

/**
 * Removes from the store what nothing refers to any more: what attempts that did not win have left, the
 * bytes of deleted artifacts, artifacts that a tenant's retention rules give up, and uploads that their
 * server did not live to end. What is to go is in Postgres until it is gone, so a store that is away, or
 * a crash, only makes it later.
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
    const { pool, store, config, clockWatch } = this.ctx;
    const { afterS } = config.sweep;
    if (this.sweeps++ % SWEEPS_PER_RETENTION === 0) await this.expire();
    await this.each<Buried>(
      (after) => listBuried(pool, afterS, after, BATCH),
      async ({ storage_id: id, kind }) => {
        await store.removeAll(prefixOfKind(kind, id));
        await noteBytesRemoved(pool, id);
      },
    );
    await this.each<SweepableJob>(
      (after) => listJobsToSweep(pool, afterS, after, BATCH),
      async (job) => {
        for (const prefix of leftoversOf(job)) await store.removeAll(prefix);
        await noteSwept(pool, job.job_id);
      },
    );
    const abandoned = await clockWatch.transaction((db) => listAbandoned(db, BATCH));
    for (const { storage_id: id, kind } of abandoned) {
      await store.removeAll(prefixOfKind(kind, id));
      await dropAbandoned(pool, id);
    }
  }

  /** What is too old and still needed is looked at again each time. */
  private async expire(): Promise<void> {
    const { pool, logger, clockWatch } = this.ctx;
    await clockWatch.transaction(deleteOldChangeEvents);
    await clockWatch.transaction(deleteOldMetrics);
    for (const rule of await listTenantRules(pool)) {
      await this.each<Expired>(
        (after) => clockWatch.transaction((db) => buryExpired(db, rule, after, BATCH)),
        async ({ storage_id: id, is_buried: isBuried }) => {
          if (isBuried) logger.info({ storage_id: id }, "artifact expired");
        },
      );
    }
  }

  /** Goes through a list to its end. What fails is left for the next sweep, and keeps nothing else back. */
  private async each<T>(
    list: (after: T | undefined) => Promise<T[]>,
    work: (item: T) => Promise<void>,
  ): Promise<void> {
    let failure: unknown;
    for (let page = await list(undefined); page.length > 0; page = await list(page.at(-1))) {
      for (let at = 0; at < page.length; at += AT_ONCE) {
        const done = await Promise.allSettled(page.slice(at, at + AT_ONCE).map(work));
        for (const one of done) if (one.status === "rejected") failure ??= one.reason;
      }
      if (page.length < BATCH) break;
    }
    if (failure) throw failure;
  }
}

/** Where attempts of a job may have left something: all but its artifact, and its logs. */
const leftoversOf = (job: SweepableJob): string[] => [
  uploadPrefix(job.job_id),
  runPrefix(job.job_id),
  ...job.lost_ids.map((id) => artifactPrefix(job.job_type, id)),
];
