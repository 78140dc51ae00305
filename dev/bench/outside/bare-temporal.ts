/**
 * Task queue of the bare workflows. Their worker is a separate process (bare-temporal-worker.ts).
 */
export const BARE_TASK_QUEUE = "bench-bare";
