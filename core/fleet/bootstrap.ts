/** How a machine becomes a worker (spec.md 3.2), one activity a step, in this order. */
export const BOOTSTRAP_STEPS = [
  { name: "connect", does: "connects, and checks the host's key", timeoutS: 120 },
  { name: "script", does: "uploads the bootstrap script, and looks at the machine", timeoutS: 300 },
  {
    name: "packages",
    does: "installs system packages, Python, a container runtime and GPU drivers, where missing",
    timeoutS: 3_600,
  },
  {
    name: "repository",
    does: "fetches the compute repository, or unpacks what the server brings",
    timeoutS: 900,
  },
  { name: "requirements", does: "installs the Python requirements", timeoutS: 3_600 },
  {
    name: "agent",
    does: "starts the agent as a service, with a worker key of its own",
    timeoutS: 300,
  },
  { name: "ready", does: "waits until the worker is heard, and marks it idle", timeoutS: 300 },
] as const;

export type BootstrapStep = (typeof BOOTSTRAP_STEPS)[number]["name"];

/** Where the steps are done: a queue beside the one of all other work. */
export const bootstrapTaskQueue = (taskQueue: string): string => `${taskQueue}-bootstrap`;

/** Tries of one step before the whole bootstrap fails. */
export const STEP_TRIES = 3;

/** The name the bootstrap workflow is registered under. */
export const BOOTSTRAP_WORKFLOW = "bootstrapWorkflow";

export interface BootstrapInput {
  workerId: string;
  /** Each call for a bootstrap of a worker has a number of its own, which only grows. */
  run: number;
}

export type BootstrapEnd = { status: "ready" } | { status: "failed"; step: BootstrapStep };

/** No other try can mend it. */
export const NOT_RETRYABLE = "BootstrapRefused";
