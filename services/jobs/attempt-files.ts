import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface AttemptFile {
  path: string;
  size_bytes: number;
  sha256: string | null;
  /** True while a server moves the upload to its final name. */
  is_moving: boolean;
  /**
   * False if a move was started but its end is not recorded: the file may be missing under its
   * final name.
   */
  is_confirmed: boolean;
}

/**
 * A move that takes longer than this counts as failed: its server has probably died before it could
 * record the end.
 */
const MOVE_TIMEOUT = "15 minutes";

/**
 * Records an uploaded file of a running attempt before the file is moved to its final name. Returns
 * false if the attempt has ended. If two calls record different checksums for one path, `sha256`
 * becomes null, because it is unknown which of the two files is stored.
 */
export async function recordUpload(
  db: Queryable,
  jobId: string,
  attempt: number,
  file: { path: string; sizeBytes: number; sha256: string },
): Promise<boolean> {
  const recorded = await execute(
    db,
    `insert into attempt_files (job_id, attempt, path, size_bytes, sha256, movers, moving_until)
     select job_id, attempt, $3, $4, $5, 1, now() + interval '${MOVE_TIMEOUT}' from attempts
     where job_id = $1 and attempt = $2 and state = 'running' for share
     on conflict (job_id, attempt, path) do update
       set size_bytes = excluded.size_bytes,
           sha256 = case when attempt_files.sha256 = excluded.sha256 then excluded.sha256 end,
           -- movers counts uploads whose files differ. Uploads of the same bytes count as one:
           -- whichever of them is moved last, the stored file is the same.
           movers = case when attempt_files.sha256 = excluded.sha256 then 1
                         else attempt_files.movers + 1 end,
           moving_until = excluded.moving_until`,
    [jobId, attempt, file.path, file.sizeBytes, file.sha256],
  );
  return recorded === 1;
}

/**
 * Records the end of a move. `isThere` is true if a file has the final name now, from this upload
 * or an earlier one. If `isThere` is false, deletes the record of the file.
 */
export async function recordMove(
  db: Queryable,
  jobId: string,
  attempt: number,
  { path, isThere }: { path: string; isThere: boolean },
): Promise<void> {
  await execute(
    db,
    isThere
      ? `update attempt_files set movers = greatest(0, movers - 1)
         where job_id = $1 and attempt = $2 and path = $3`
      : "delete from attempt_files where job_id = $1 and attempt = $2 and path = $3",
    [jobId, attempt, path],
  );
}

/** SQL: the AttemptFiles of an attempt `a`, as JSON. */
export const ATTEMPT_FILES = `(
  select coalesce(jsonb_agg(jsonb_build_object(
    'path', path, 'size_bytes', size_bytes, 'sha256', sha256,
    'is_moving', movers > 0 and moving_until > now(), 'is_confirmed', movers = 0)), '[]')
  from attempt_files f where f.job_id = a.job_id and f.attempt = a.attempt)`;

/**
 * Call when a file is found under its final name, with this checksum. Records the end of the file's
 * move, if the request that moved the file has not recorded it, for example because it failed.
 */
export async function confirmUpload(
  db: Queryable,
  jobId: string,
  attempt: number,
  { path, sha256 }: { path: string; sha256: string },
): Promise<void> {
  await execute(
    db,
    `update attempt_files set movers = 0
     where job_id = $1 and attempt = $2 and path = $3 and sha256 = $4 and movers = 1`,
    [jobId, attempt, path, sha256],
  );
}

/** A file whose size and checksum are known. */
export interface RecordedFile {
  sizeBytes: number;
  sha256: string;
  /** False if the move to its final name may have failed. */
  isConfirmed: boolean;
}

/**
 * Finds the size and checksum of an attempt's file. Undefined if they are not recorded, or if
 * several uploads of this path are moved to their final name at once, so that it is unclear which
 * one is stored.
 */
export async function findRecordedFile(
  db: Queryable,
  jobId: string,
  attempt: number,
  path: string,
) {
  return await maybeOne<RecordedFile>(
    db,
    `select size_bytes as "sizeBytes", sha256, movers = 0 as "isConfirmed" from attempt_files
     where job_id = $1 and attempt = $2 and path = $3 and sha256 is not null and movers < 2`,
    [jobId, attempt, path],
  );
}
