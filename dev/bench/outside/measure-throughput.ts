import { CostNotes } from "./cpu";
import { SUBMISSION } from "./jobs";
import { type Queue, withHatchet, withLibraries } from "./queues";
import { interleave, interleaveAll } from "./rounds";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import { type Forge, NO_WORKFLOW_STARTS, type Stage } from "./stage";

/**
 * Multiplies the number of jobs per round for the job queues that are libraries. They are faster
 * than Forge, and every round must take at least a second.
 */
const LIBRARY_FACTOR = 8;

/**
 * P1: jobs per second from submission to `completed`. Peers: bare workflows on the same Temporal
 * server, and job queues on the same Postgres. The queues have no remote workers, no bills and no
 * manifests. Hatchet is compared last, in separate rounds: its server uses CPU time even without
 * jobs, and would disturb the other measurements.
 */
export async function measureThroughput(stage: Stage, scale: Scale): Promise<Row[]> {
  const forge = await stage.startForge();
  try {
    const run: Run = { stage, scale, forge };
    if (!scale.includesJobQueues) return await compareWithTemporal(run, []);
    const rows = await withLibraries(stage, (libraries) => compareWithTemporal(run, libraries));
    const hatchet = await withHatchet(stage, (queue) => compareWithHatchet(run, queue));
    return hatchet ? [...rows, hatchet] : rows;
  } finally {
    await forge.stop();
  }
}

interface Run {
  stage: Stage;
  scale: Scale;
  forge: Forge;
}

const DESCRIBED = { id: "P1", unit: "/s" } as const;
const OF_QUEUE = { ...DESCRIBED, what: "the same; jobs of a job queue" };

/** Compares Forge with bare workflows, and with job queues that are libraries. */
async function compareWithTemporal(run: Run, libraries: Queue[]): Promise<Row[]> {
  const { stage, scale, forge } = run;
  const { generator, temporalAddress: address } = stage;
  const { jobs, inFlight, workers, rounds } = scale;
  const costs = new CostNotes(stage, forge, jobs);
  const runWorkflows = () => generator.run("runWorkflows", { address, count: jobs, inFlight });
  const temporal = {
    name: "bare Temporal",
    measure: () => costs.note("bare workflow", runWorkflows),
  };
  const queues = libraries.map(({ name, url }) => ({
    name,
    measure: () => runQueue(run, url, jobs * LIBRARY_FACTOR),
  }));
  const peers = [temporal, ...queues];
  const results = await interleaveAll(rounds, () => costs.note("job", () => runForge(run)), peers);
  const generatorShare = generator.takeMaxCpuShare();
  const what = `jobs end to end, ${workers} workers, ${inFlight} in flight; bare one-activity workflows`;
  const goal = { of: "ratio", atLeast: 1 } as const;
  return results.map((result, n) =>
    n === 0
      ? resultRow({ ...DESCRIBED, what, goal }, result, {
          generatorShare,
          details: costs.medians(),
        })
      : resultRow(OF_QUEUE, result, { generatorShare }),
  );
}

async function compareWithHatchet(run: Run, { name, url }: Queue): Promise<Row> {
  const { scale, stage } = run;
  const peer = { name, measure: () => runQueue(run, url, scale.jobs) };
  const result = await interleave(scale.rounds, () => runForge(run), peer);
  return resultRow(OF_QUEUE, result, { generatorShare: stage.generator.takeMaxCpuShare() });
}

async function runForge({ stage, scale, forge }: Run): Promise<number> {
  const { workers, jobs, inFlight } = scale;
  return await stage.generator.run("runJobs", { ...forge, workers, jobs, inFlight });
}

async function runQueue({ stage, scale }: Run, url: string, count: number): Promise<number> {
  const calls = [{ ...SUBMISSION, path: "/jobs" }];
  const load = { url, key: "", calls, connections: scale.inFlight, count };
  return (await stage.generator.run("sendRequests", load)).perSecond;
}

/** P9: submissions accepted per second. Each round uses a new server without other jobs. */
export async function measureBurst(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, expressUrl } = stage;
  const { burst, burstRounds } = scale;
  const send = async (url: string, key: string, path: string, count: number): Promise<number> => {
    const calls = [{ ...SUBMISSION, path }];
    const options = { url, key, calls, connections: 64, count };
    return (await generator.run("sendRequests", options)).perSecond;
  };
  const onFreshForge = async (): Promise<number> => {
    const forge: Forge = await stage.startForge(NO_WORKFLOW_STARTS);
    try {
      await send(forge.url, forge.userKey, SUBMISSION.path, WARM_UP);
      return await send(forge.url, forge.userKey, SUBMISSION.path, burst);
    } finally {
      await forge.stop();
    }
  };
  const peer = {
    name: "express + pg INSERT",
    measure: () => send(expressUrl, "", "/jobs", burst),
  };
  const result = await interleave(burstRounds, onFreshForge, peer);
  return [
    resultRow(
      {
        id: "P9",
        what: `submissions accepted in a burst of ${burst.toLocaleString("en")}, no worker`,
        unit: "/s",
        goal: { of: "ratio", atLeast: 0.4 },
      },
      result,
      { generatorShare: generator.takeMaxCpuShare() },
    ),
  ];
}

/** Number of submissions before the burst, to compile code and open connections. */
const WARM_UP = 200;
