import { quantile } from "../dispatch-latency";
import { interleave } from "./rounds";
import { type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import { insertWorkers } from "./seeded-rows";
import type { Stage } from "./stage";
import { POLL_S } from "./waiting-polls";

const PER_SECOND = 20;
/**
 * A heartbeat time-out that is longer than the measurements, so that no worker is marked dead. The
 * workers of P7 send no heartbeats. Those of P6 send heartbeats only while Forge is measured, and
 * not, for example, while its peer is measured.
 */
const NEVER_SILENT = { FORGE_HEARTBEAT_TIMEOUT_S: "600" };

/**
 * P6: a fleet of waiting workers. Measures the time until one of them has received a job, and the
 * CPU time of an API server while the fleet waits.
 */
export async function measureFleet(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator } = stage;
  const { fleet: workers, fleetJobs: jobs, fleetRounds: rounds } = scale;
  const forge = await stage.startForge(NEVER_SILENT);
  try {
    await insertWorkers(forge.databaseUrl, workers);
    const options = { ...forge, workers, isRegistered: true };
    const received: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const latencies = await generator.run("paceJobs", {
        ...options,
        jobs,
        perSecond: PER_SECOND,
      });
      if (round === 0) continue;
      received.push(...latencies);
    }
    return [
      resultRow(
        {
          id: "P6",
          what: `submission to the job received by a worker, ${workers.toLocaleString("en")} waiting workers, ${PER_SECOND}/s, p99`,
          unit: "ms",
          goal: { of: "forge", atMost: 20 },
        },
        // The p99 of all rounds together. The jobs of one round are too few for a reliable p99.
        { forge: [quantile(received, 0.99)] },
        { generatorShare: generator.takeMaxCpuShare() },
      ),
      await compareCpu(stage, scale, { ...options, ...(await forge.startApiServer()) }),
    ];
  } finally {
    await forge.stop();
  }
}

async function compareCpu(
  { generator, bareServer }: Stage,
  { fleetRounds: rounds, cpuSeconds: seconds }: Scale,
  forge: { url: string; workerKey: string; workers: number; pid: number },
): Promise<Row> {
  const { workers } = forge;
  const share = async (server: { url: string; workerKey: string; pid: number }): Promise<number> =>
    100 * (await generator.run("holdFleet", { ...server, workers, seconds }));
  const result = await interleave(rounds, () => share(forge), {
    name: "node:http",
    measure: () => share({ ...bareServer, workerKey: "" }),
  });
  return resultRow(
    {
      id: "P6",
      what: `CPU of an API server with ${workers.toLocaleString("en")} workers that poll and send heartbeats`,
      unit: "% of a core",
      goal: { of: "ratio", atMost: 1.5 },
    },
    result,
    { generatorShare: generator.takeMaxCpuShare() },
  );
}

/** P7: memory and CPU time of waiting polls. The workers send no heartbeats: P3 measures those. */
export async function measureWaitingPolls(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator } = stage;
  const { waitingPolls: workers, fleetRounds: rounds, cpuSeconds: seconds } = scale;
  const kib: number[] = [];
  const shares: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const forge = await stage.startForge({ ...NEVER_SILENT, FORGE_MAX_POLL_S: String(POLL_S) });
    try {
      await insertWorkers(forge.databaseUrl, workers);
      const options = { ...forge, ...(await forge.startApiServer()), workers, seconds };
      const { kibPerPoll, addedCpuShare } = await generator.run("holdPolls", options);
      kib.push(kibPerPoll);
      shares.push(100 * addedCpuShare);
    } finally {
      await forge.stop();
    }
  }
  const generatorShare = generator.takeMaxCpuShare();
  const all = `${workers.toLocaleString("en")} waiting polls`;
  return [
    resultRow(
      {
        id: "P7",
        what: `memory per poll of ${all}`,
        unit: "KiB",
        goal: { of: "forge", atMost: 20 },
      },
      { forge: kib },
      { generatorShare },
    ),
    resultRow(
      {
        id: "P7",
        what: `CPU that ${all} add`,
        unit: "% of a core",
        goal: { of: "forge", atMost: 2 },
      },
      { forge: shares },
      { generatorShare },
    ),
  ];
}
