import { cpuOf } from "./cpu";
import { SUBMISSION } from "./jobs";
import { interleave } from "./rounds";
import { median, type Row, rowOf } from "./rows";
import type { Scale } from "./scale";
import type { Forge, Stage } from "./stage";

/** P1: jobs per second from submission to `completed`, and bare workflows on the same Temporal server. */
export async function measureThroughput(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, temporalAddress } = stage;
  const { jobs, inFlight, workers, rounds } = scale;
  const forge = await stage.startForge();
  const costs: Record<string, number[]> = {};
  const noting = async (prefix: string, run: () => Promise<number>): Promise<number> => {
    const before = cpuOf(stage, forge);
    const result = await run();
    for (const [part, seconds] of Object.entries(cpuOf(stage, forge))) {
      const ms = ((seconds - (before[part] ?? 0)) * 1000) / jobs;
      const name = `CPU ms of ${part} per ${prefix}`;
      costs[name] = [...(costs[name] ?? []), ms];
    }
    return result;
  };
  try {
    const result = await interleave(
      rounds,
      () => noting("job", () => generator.run("runJobs", { ...forge, workers, jobs, inFlight })),
      {
        name: "bare Temporal",
        measure: () =>
          noting("bare workflow", () =>
            generator.run("runWorkflows", { address: temporalAddress, count: jobs, inFlight }),
          ),
      },
    );
    const details = Object.fromEntries(
      Object.entries(costs).map(([name, values]) => [name, median(values.slice(1))]),
    );
    return [
      rowOf(
        {
          id: "P1",
          what: `jobs end to end, ${workers} workers, ${inFlight} in flight; bare one-activity workflows`,
          unit: "/s",
          goal: { of: "ratio", atLeast: 1 },
        },
        result,
        { generatorShare: generator.takeShare(), details },
      ),
    ];
  } finally {
    await forge.stop();
  }
}

/** P9: submissions accepted per second, each round by a server without other jobs. */
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
    rowOf(
      {
        id: "P9",
        what: `submissions accepted in a burst of ${burst.toLocaleString("en")}, no worker`,
        unit: "/s",
        goal: { of: "ratio", atLeast: 0.4 },
      },
      result,
      { generatorShare: generator.takeShare() },
    ),
  ];
}

/** Submissions before the burst: the first ones compile code and open connections. */
const WARM_UP = 200;
