import { artifactPrefix, prefixOfKind } from "../../core/artifacts/artifacts";
import { runPrefix, uploadPrefix } from "../../core/jobs/attempt-files";
import { PagedWork, runEach } from "../../platform/concurrency/run-each";
import { checkRecordFile } from "../billing/record-file";
import type { Context } from "../context";
import { hasSameEnd, listJobsToSweep, markSwept, type SweepableJob } from "../jobs/orphaned-files";
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
 * Removes unreferenced files from the store: files of attempts that did not win, files of artifacts
 * that are marked as deleted, and files of uploads that a crash interrupted. Postgres records which
 * files are still to be removed, so an outage of the store or a crash only delays the removal.
 */
export class Sweeper extends LoopComponent {
  constructor(ctx: Context) {
    super(ctx, "sweeper", ctx.config.sweep.intervalS * 1000, "sweep");
  }

  protected async run(): Promise<void> {
    await runEach([
      () => this.deletedArtifacts.run(),
      () => this.orphanedFiles.run(),
      () => this.abandonedUploads.run(),
    ]);
  }

  private readonly deletedArtifacts = new PagedWork<DeletedArtifact>(
    BATCH,
    (after) => listDeletedArtifacts(this.ctx.pool, this.ctx.config.sweep.afterS, after, BATCH),
    async ({ storage_id: id, kind }) => {
      await this.ctx.store.removeAll(prefixOfKind(kind, id));
      await markBytesRemoved(this.ctx.pool, id);
    },
  );

  private readonly orphanedFiles = new PagedWork<SweepableJob>(
    BATCH,
    (after) => listJobsToSweep(this.ctx.pool, this.ctx.config.sweep.afterS, after, BATCH),
    async (job) => {
      if (!(await hasSameEnd(this.ctx.pool, job))) return;
      for (const prefix of orphanedPrefixesOf(job)) await this.ctx.store.removeAll(prefix);
      await this.checkFiles(job);
      await markSwept(this.ctx.pool, job);
    },
  );

  private readonly abandonedUploads = new PagedWork<AbandonedUpload>(
    BATCH,
    (after) =>
      this.ctx.clockWatch.transaction((db) => listAbandonedUploads(db, after, BATCH), {
        requireKnownClock: true,
      }),
    async ({ storage_id: id, kind }) => {
      await this.ctx.store.removeAll(prefixOfKind(kind, id));
      await deleteAbandonedUpload(this.ctx.pool, id);
    },
  );

  /**
   * Corrects the job's billing file and manifest file if they differ from the database. A process
   * that was suspended just before it writes a file may overwrite a newer file when it resumes.
   * Usually the same process then corrects the file. The sweeper does so if that process ended
   * between the write and the correction.
   */
  private async checkFiles(job: SweepableJob): Promise<void> {
    await checkRecordFile(this.ctx, job);
    const { storage_id: id, job_type: type } = job;
    if (id !== null) await checkManifestFile(this.ctx, id, artifactPrefix(type, id));
  }
}

/** Prefixes where a job's attempts may have left files, except the job's artifact and logs. */
const orphanedPrefixesOf = (job: SweepableJob): string[] => [
  uploadPrefix(job.job_id),
  runPrefix(job.job_id),
  ...job.orphaned_ids.map((id) => artifactPrefix(job.job_type, id)),
];
