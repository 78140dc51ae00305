import { CostNotes } from "./cpu";
import { SUBMISSION } from "./jobs";
import { startQueues } from "./queues";
import { interleave, interleaveAll } from "./rounds";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Forge, Stage } from "./stage";

/**
 * Factor between the number of jobs in a fast job queue's round and in Forge's round. A round must
 * take at least a second.
 */
const QUEUE_FACTOR = 8;

/**
 * P1: jobs per second from submission to `completed`. Peers: bare workflows on the same Temporal
 * server, and job queues on the same Postgres. The queues have no remote workers, no bills and no
 * manifests.
 */
export async function measureThroughput(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, temporalAddress } = stage;
  const { jobs, inFlight, workers, rounds } = scale;
  const forge = await stage.startForge();
  const queues = scale.includesJobQueues ? await startQueues(stage) : [];
  const costs = new CostNotes(stage, forge, jobs);
  const temporal = {
    name: "bare Temporal",
    measure: () =>
      costs.note("bare workflow", () =>
        generator.run("runWorkflows", { address: temporalAddress, count: jobs, inFlight }),
      ),
  };
  const peers = queues.map(({ name, url, fast }) => ({
    name,
    measure: async () => {
      const options = { url, key: "", calls: [{ ...SUBMISSION, path: "/jobs" }] };
      const load = { ...options, connections: inFlight, count: fast ? jobs * QUEUE_FACTOR : jobs };
      return (await generator.run("sendRequests", load)).perSecond;
    },
  }));
  try {
    const [first, ...others] = await interleaveAll(
      rounds,
      () =>
        costs.note("job", () => generator.run("runJobs", { ...forge, workers, jobs, inFlight })),
      [temporal, ...peers],
    );
    if (!first) throw new Error("nothing was measured");
    const described = { id: "P1", unit: "/s" } as const;
    const generatorShare = generator.takeMaxCpuShare();
    return [
      resultRow(
        {
          ...described,
          what: `jobs end to end, ${workers} workers, ${inFlight} in flight; bare one-activity workflows`,
          goal: { of: "ratio", atLeast: 1 },
        },
        first,
        { generatorShare, details: costs.medians() },
      ),
      ...others.map((each) =>
        resultRow({ ...described, what: "the same; jobs of a job queue" }, each, {
          generatorShare,
        }),
      ),
    ];
  } finally {
    for (const queue of queues) await queue.stop();
    await forge.stop();
  }
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
