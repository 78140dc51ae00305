/**
 * SQL: a subquery to read from instead of the table `jobs`. It includes archived jobs (see archive.ts). It needs an alias
 * in Postgres before 16. Both tables have the same columns in the same order: a migration that adds one adds it to both,
 * in one file.
 */
export const ALL_JOBS = "(select * from jobs union all select * from archived_jobs)";

/** SQL: a subquery to read from instead of the table `attempts`. It includes the attempts of archived jobs. */
export const ALL_ATTEMPTS = "(select * from attempts union all select * from archived_attempts)";
