/** The steps that turn a machine into a worker (spec.md 3.2), in order. Each is one activity. */
export const BOOTSTRAP_STEPS = [
  { name: "connect", does: "connects and verifies the host key", timeoutS: 120 },
  { name: "script", does: "uploads the bootstrap script and inspects the machine", timeoutS: 300 },
  {
    name: "packages",
    does: "installs missing system packages, Python, a container runtime and GPU drivers",
    timeoutS: 3_600,
  },
  {
    name: "repository",
    does: "fetches the compute repository, or unpacks the archive from the server",
    timeoutS: 900,
  },
  { name: "requirements", does: "installs the Python requirements", timeoutS: 3_600 },
  { name: "agent", does: "starts the agent as a service, with its own worker key", timeoutS: 300 },
  {
    name: "ready",
    does: "waits for the first heartbeat, then marks the worker idle",
    timeoutS: 300,
  },
] as const;

export type BootstrapStep = (typeof BOOTSTRAP_STEPS)[number]["name"];

/** Bootstrap steps run on a separate task queue. */
export const bootstrapTaskQueue = (taskQueue: string): string => `${taskQueue}-bootstrap`;

/** Maximum attempts of one step. After the last one the bootstrap fails. */
export const STEP_TRIES = 3;

export const BOOTSTRAP_WORKFLOW = "bootstrapWorkflow";

export interface BootstrapInput {
  workerId: string;
  /** The number of this bootstrap. Each new bootstrap of the worker increases the number. */
  run: number;
}

export type BootstrapEnd = { status: "ready" } | { status: "failed"; step: BootstrapStep };

/** Failure type of a step that a retry can't fix. */
export const NOT_RETRYABLE = "BootstrapRefused";
