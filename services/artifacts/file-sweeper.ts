import { artifactPrefix, prefixOfKind } from "../../core/artifacts/artifacts";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { runPrefix, uploadPrefix } from "../../core/jobs/attempt-files";
import { forEachPage, runEach } from "../../platform/concurrency/run-each";
import { checkRecordFile } from "../billing/record-file";
import type { Context } from "../context";
import { listJobsToSweep, markSwept, type SweepableJob } from "../jobs/orphaned-files";
import { LoopComponent } from "../loop-component";
import { type DeletedArtifact, listDeletedArtifacts, markBytesRemoved } from "./artifact-deletion";
import {
  type AbandonedUpload,
  deleteAbandonedUpload,
  listAbandonedUploads,
} from "./dataset-uploads";
import { checkManifestFile } from "./manifest-file";

const BATCH = 100;

/**
 * Removes from the store what nothing refers to any more: files of attempts that did not win, bytes of deleted
 * artifacts, and uploads interrupted by a crash. Postgres lists them until they are removed, so an outage of the
 * store or a crash only delays the removal.
 */
export class Sweeper extends LoopComponent {
  constructor(ctx: Context) {
    super(ctx, "sweeper", ctx.config.sweep.intervalS * 1000, "sweep");
  }

  protected async run(): Promise<void> {
    await runEach([
      () => this.removeDeleted(),
      () => this.removeOrphanedFiles(),
      () => this.removeAbandoned(),
    ]);
  }

  private async removeDeleted(): Promise<void> {
    const { pool, store, config } = this.ctx;
    await forEachPage<DeletedArtifact>(
      BATCH,
      (after) => listDeletedArtifacts(pool, config.sweep.afterS, after, BATCH),
      async ({ storage_id: id, kind }) => {
        await store.removeAll(prefixOfKind(kind, id));
        await markBytesRemoved(pool, id);
      },
    );
  }

  private async removeOrphanedFiles(): Promise<void> {
    const { pool, store, config } = this.ctx;
    await forEachPage<SweepableJob>(
      BATCH,
      (after) => listJobsToSweep(pool, config.sweep.afterS, after, BATCH),
      async (job) => {
        for (const prefix of orphanedPrefixesOf(job)) await store.removeAll(prefix);
        await this.checkFiles(job);
        await markSwept(pool, job.job_id);
      },
    );
  }

  /** A process that paused in the job's last writes may have written an old file later, and then ended. */
  private async checkFiles(job: SweepableJob): Promise<void> {
    await checkRecordFile(this.ctx, job);
    const { storage_id: id, job_type: type } = job;
    // Not for deployments: a stop writes the manifest's file before its row, so they may differ for a moment.
    if (id === null || type === DEPLOYMENT_TYPE) return;
    await checkManifestFile(this.ctx, id, artifactPrefix(type, id));
  }

  private async removeAbandoned(): Promise<void> {
    const { pool, store, clockWatch } = this.ctx;
    await forEachPage<AbandonedUpload>(
      BATCH,
      (after) =>
        clockWatch.transaction((db) => listAbandonedUploads(db, after, BATCH), {
          requireKnownClock: true,
        }),
      async ({ storage_id: id, kind }) => {
        await store.removeAll(prefixOfKind(kind, id));
        await deleteAbandonedUpload(pool, id);
      },
    );
  }
}

/** Prefixes where a job's attempts may have left files. Excludes its artifact and its logs. */
const orphanedPrefixesOf = (job: SweepableJob): string[] => [
  uploadPrefix(job.job_id),
  runPrefix(job.job_id),
  ...job.orphaned_ids.map((id) => artifactPrefix(job.job_type, id)),
];
