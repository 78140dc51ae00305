import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface AttemptFile {
  path: string;
  size_bytes: number;
  sha256: string | null;
  /** True: an upload of it is about to get its name. */
  is_moving: boolean;
  /** False: the server that was to give it its name died, before or after. */
  is_sure: boolean;
}

/** A server that dies between the two notes of a move is not waited for longer. */
const MOVE_TIMEOUT = "15 minutes";

/**
 * Notes what a file of a running attempt's artifact was measured to be, and that it is about to get its
 * name; false when the attempt has ended meanwhile. Noted twice with different checksums it is not known
 * which of the two is there.
 */
export async function noteAttemptFile(
  db: Queryable,
  jobId: string,
  attempt: number,
  file: { path: string; sizeBytes: number; sha256: string },
): Promise<boolean> {
  const noted = await execute(
    db,
    `insert into attempt_files (job_id, attempt, path, size_bytes, sha256, movers, moving_until)
     select job_id, attempt, $3, $4, $5, 1, now() + interval '${MOVE_TIMEOUT}' from attempts
     where job_id = $1 and attempt = $2 and state = 'running' for share
     on conflict (job_id, attempt, path) do update
       set size_bytes = excluded.size_bytes,
           sha256 = case when attempt_files.sha256 = excluded.sha256 then excluded.sha256 end,
           -- The same bytes once more are one move, whatever came of the first.
           movers = case when attempt_files.sha256 = excluded.sha256 then 1
                         else attempt_files.movers + 1 end,
           moving_until = excluded.moving_until`,
    [jobId, attempt, file.path, file.sizeBytes, file.sha256],
  );
  return noted === 1;
}

/** The file has its name, or will not get it: then it is forgotten, unless there is one of an upload before. */
export async function noteMoved(
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
    'is_moving', movers > 0 and moving_until > now(), 'is_sure', movers = 0)), '[]')
  from attempt_files f where f.job_id = a.job_id and f.attempt = a.attempt)`;

/** The file was seen to have its name, with these bytes: whoever was to give it that has done so, dead or not. */
export async function noteSeen(
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

/** A file of which it is known what it was measured to be. */
export interface NotedFile {
  sizeBytes: number;
  sha256: string;
  /** False: it may not have got its name. */
  isSure: boolean;
}

/** Undefined: not known. */
export async function findNotedFile(
  db: Queryable,
  jobId: string,
  attempt: number,
  path: string,
): Promise<NotedFile | undefined> {
  return await maybeOne<NotedFile & Record<string, unknown>>(
    db,
    `select size_bytes as "sizeBytes", sha256, movers = 0 as "isSure" from attempt_files
     where job_id = $1 and attempt = $2 and path = $3 and sha256 is not null and movers < 2`,
    [jobId, attempt, path],
  );
}
