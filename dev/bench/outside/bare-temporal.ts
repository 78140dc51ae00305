/** Where the bare workflows run; the worker is another process (bare-temporal-worker.ts). */
export const BARE_TASK_QUEUE = "bench-bare";
