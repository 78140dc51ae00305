import type { HttpCall } from "./http-connection";
import { SUBMISSION } from "./jobs";
import { completeJobs } from "./prepared-jobs";
import { interleave } from "./rounds";
import { median, type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import { NO_WORKFLOW_STARTS, type Stage } from "./stage";

const PER_SECOND = 10;

/**
 * P2: the time from a job's submission until a waiting worker has the job. For the peer, it is the
 * time from the start of a bare workflow to the start of its activity.
 */
export async function measureDispatch(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, temporalAddress: address } = stage;
  const { pacedJobs: count, workers, rounds } = scale;
  const forge = await stage.startForge();
  try {
    const paced = { perSecond: PER_SECOND };
    const result = await interleave(
      rounds,
      async () =>
        median(await generator.run("paceJobs", { ...forge, ...paced, workers, jobs: count })),
      {
        name: "bare Temporal",
        measure: async () =>
          median(await generator.run("paceWorkflows", { address, ...paced, count })),
      },
    );
    return [
      resultRow(
        {
          id: "P2",
          what: `submission to the job received by a worker at ${PER_SECOND}/s, p50; bare start to activity`,
          unit: "ms",
          goal: { of: "ratio", atMost: 0.25 },
        },
        result,
        { generatorShare: generator.takeMaxCpuShare() },
      ),
    ];
  } finally {
    await forge.stop();
  }
}

/** P5: the latency of single calls, made one after the other on an idle server. */
export async function measureCallsAlone(stage: Stage, scale: Scale): Promise<Row[]> {
  const { generator, peerDatabaseUrl: databaseUrl } = stage;
  const { calls: count, rounds } = scale;
  const forge = await stage.startForge(NO_WORKFLOW_STARTS);
  const p50 = async (call: HttpCall): Promise<number> => {
    const options = { url: forge.url, key: forge.userKey, calls: [call], connections: 1, count };
    return median((await generator.run("sendRequests", options)).latencies);
  };
  const health = {
    name: "GET /healthz",
    measure: () => p50({ method: "GET", path: "/healthz" }),
  };
  const commit = {
    name: "one-row commit",
    measure: async () => median(await generator.run("commitRows", { databaseUrl, count })),
  };
  const alone = [
    { what: "ping", call: { method: "GET", path: "/api/auth/ping" }, peer: health, atMost: 1.1 },
    { what: "list of 20", call: LIST_OF_20, peer: health, atMost: 1.5 },
    { what: "submission", call: SUBMISSION, peer: commit, atMost: 2 },
    {
      what: "submission with an Idempotency-Key",
      call: { ...SUBMISSION, isIdempotent: true },
      peer: commit,
      atMost: 2,
    },
  ] as const;
  try {
    await completeJobs(stage, forge, 20);
    const rows: Row[] = [];
    for (const { what, call, peer, atMost } of alone) {
      const result = await interleave(rounds, () => p50(call), peer);
      const goal = { of: "forge", atMost } as const;
      const more = { generatorShare: generator.takeMaxCpuShare() };
      rows.push(
        resultRow(
          { id: "P5", what: `${what}, one call at a time, p50`, unit: "ms", goal },
          result,
          more,
        ),
      );
    }
    return rows;
  } finally {
    await forge.stop();
  }
}

export const LIST_OF_20 = { method: "GET", path: "/api/jobs?limit=20" } as const;
