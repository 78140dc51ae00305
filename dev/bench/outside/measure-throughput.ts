import { CostNotes } from "./cpu";
import { SUBMISSION } from "./jobs";
import { withHatchet, withLibraries } from "./queues";
import { interleave, interleaveAll } from "./rounds";
import { type Rounds, type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Forge, Stage } from "./stage";

/**
 * Factor between the number of jobs in a round of a queue that is a library, and in Forge's round.
 * Such queues are faster, and a round must take at least a second.
 */
const LIBRARY_FACTOR = 8;

/**
 * P1: jobs per second from submission to `completed`. Peers: bare workflows on the same Temporal
 * server, and job queues on the same Postgres. The queues have no remote workers, no bills and no
 * manifests. Hatchet has rounds of its own after the others, because its server also works while no
 * job runs.
 */
export async function measureThroughput(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, temporalAddress } = stage;
  const { jobs, inFlight, workers, rounds, includesJobQueues } = scale;
  const forge = await stage.startForge();
  const runForge = () => generator.run("runJobs", { ...forge, workers, jobs, inFlight });
  const runQueue = async (url: string, count: number): Promise<number> => {
    const calls = [{ ...SUBMISSION, path: "/jobs" }];
    const load = { url, key: "", calls, connections: inFlight, count };
    return (await generator.run("sendRequests", load)).perSecond;
  };
  const rowOf = (result: Required<Rounds>, what: string, more: Partial<Row> = {}): Row => {
    const generatorShare = generator.takeMaxCpuShare();
    return resultRow({ id: "P1", unit: "/s", what, ...more }, result, { generatorShare });
  };
  const compareWith = async (libraries: { name: string; url: string }[]): Promise<Row[]> => {
    const costs = new CostNotes(stage, forge, jobs);
    const temporal = {
      name: "bare Temporal",
      measure: () =>
        costs.note("bare workflow", () =>
          generator.run("runWorkflows", { address: temporalAddress, count: jobs, inFlight }),
        ),
    };
    const queues = libraries.map(({ name, url }) => ({
      name,
      measure: () => runQueue(url, jobs * LIBRARY_FACTOR),
    }));
    const [first, ...others] = await interleaveAll(rounds, () => costs.note("job", runForge), [
      temporal,
      ...queues,
    ]);
    if (!first) throw new Error("nothing was measured");
    const what = `jobs end to end, ${workers} workers, ${inFlight} in flight; bare one-activity workflows`;
    const goal = { of: "ratio", atLeast: 1 } as const;
    return [
      rowOf(first, what, { goal, details: costs.medians() }),
      ...others.map((each) => rowOf(each, OF_QUEUE)),
    ];
  };
  try {
    if (!includesJobQueues) return await compareWith([]);
    const rows = await withLibraries(stage, compareWith);
    const hatchet = await withHatchet(stage, async ({ name, url }) => {
      const peer = { name, measure: () => runQueue(url, jobs) };
      return rowOf(await interleave(rounds, runForge, peer), OF_QUEUE);
    });
    return hatchet ? [...rows, hatchet] : rows;
  } finally {
    await forge.stop();
  }
}

const OF_QUEUE = "the same; jobs of a job queue";

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
    const forge: Forge = await stage.startForge();
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
