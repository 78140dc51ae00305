/**
 * SQL: a subquery to read from instead of the table `jobs`. It includes archived jobs (see
 * archive.ts). Postgres before version 16 requires an alias for the subquery. `jobs` and
 * `archived_jobs` must have the same columns in the same order. So add a new column to both tables
 * in the same migration file.
 */
export const ALL_JOBS = "(select * from jobs union all select * from archived_jobs)";

/**
 * SQL: a subquery to read from instead of the table `attempts`. It includes the attempts of
 * archived jobs.
 */
export const ALL_ATTEMPTS = "(select * from attempts union all select * from archived_attempts)";
