import { commitRows } from "./commits";
import { paceJobs, runJobs } from "./jobs";
import { sendRequests } from "./requests";
import { holdFleet, holdPolls } from "./waiting-polls";
import { paceWorkflows, runWorkflows } from "./workflows";

const loads = {
  commitRows,
  holdFleet,
  paceJobs,
  paceWorkflows,
  holdPolls,
  runJobs,
  runWorkflows,
  sendRequests,
};

export type Loads = typeof loads;

export interface LoadRequest {
  name: keyof Loads;
  options: unknown;
}

export interface LoadReply {
  result?: unknown;
  error?: string;
  /**
   * CPU time of this process divided by the load's elapsed time. At 1 the generator is the
   * bottleneck.
   */
  cpuShare: number;
}

/**
 * Runs one load at a time for the parent process. All clients of the benchmark are in this process.
 */
async function run({ name, options }: LoadRequest): Promise<LoadReply> {
  const load = loads[name] as (given: unknown) => Promise<unknown>;
  const began = performance.now();
  const before = process.cpuUsage();
  const reply = await load(options).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: String(error) }),
  );
  const { user, system } = process.cpuUsage(before);
  return { ...reply, cpuShare: (user + system) / 1000 / (performance.now() - began) };
}

process.on("disconnect", () => process.exit());
process.on("message", (request: LoadRequest) => {
  void run(request).then((reply) => process.send?.(reply));
});
