/**
 * Returns an SQL condition that Postgres checks on each row and never looks up in an index. Use it
 * in statements that find rows by id and also filter by state.
 *
 * If the last ANALYZE saw few rows in a state, Postgres expects a partial index of that state to be
 * almost empty. For `job_id = $1 and state = 'queued'`, it may then read the whole index of the
 * queue instead of one entry of the primary key.
 */
export const rowFilter = (condition: string): string =>
  `case when ${condition} then true else false end`;
