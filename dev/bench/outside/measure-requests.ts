import { ApiClient } from "../../api-client";
import type { HttpCall } from "./http-connection";
import { LIST_OF_20 } from "./measure-latency";
import { completeJobs, insertPeerJobs } from "./prepared-jobs";
import { interleave } from "./rounds";
import { type Described, type Rounds, type Row, resultRow } from "./rows";
import type { Scale } from "./scale";
import type { Forge, Stage } from "./stage";

const CONNECTIONS = 64;
const GPU = { util: 50, mem_used: 1, mem_total: 2 };

/** P3: heartbeats per second, from all workers of a fleet in turn. */
export async function measureHeartbeats(stage: Stage, scale: Scale): Promise<Row[]> {
  const { expressUrl } = stage;
  const forge = await stage.startForge();
  try {
    const ids = Array.from({ length: scale.fleet }, (_, n) => `bench-${n}`);
    const register = (path: string): HttpCall[] =>
      ids.map((id) => call(path, { worker_id: id, gpu: { name: "cpu", memory_gb: 0 }, tags: [] }));
    const heartbeats = (path: string): HttpCall[] =>
      ids.map((id) => call(path, { worker_id: id, gpu: GPU }));
    await sendOnce(stage, forge.url, forge.workerKey, register("/worker/register"));
    await sendOnce(stage, expressUrl, "", register("/workers"));
    const measured = await compareRates(stage, scale.requestRounds, scale, {
      // One connection per worker, as in a real fleet. Forge answers heartbeats in batches, every
      // 100 ms, so fewer connections would limit the rate.
      connections: scale.fleet,
      forge: { url: forge.url, key: forge.workerKey, calls: heartbeats("/worker/heartbeat") },
      peer: {
        url: expressUrl,
        key: "",
        calls: heartbeats("/heartbeats"),
        name: "express + pg UPDATE",
      },
    });
    const described: Described = {
      id: "P3",
      what: `heartbeats of ${scale.fleet.toLocaleString("en")} workers`,
      unit: "/s",
      goal: { of: "ratio", atLeast: 3 },
    };
    return [rowOf(described, [measured])];
  } finally {
    await forge.stop();
  }
}

const JOBS = 100;

const READS: Described[] = [
  { id: "P4", what: "GET of a completed job", unit: "/s", goal: { of: "ratio", atLeast: 0.9 } },
  {
    id: "P4",
    what: "list of 20 completed jobs, equal requests",
    unit: "/s",
    goal: { of: "forge", atLeast: 2_000 },
  },
  {
    id: "P4",
    what: "the same, each request from another position",
    unit: "/s",
    goal: { of: "forge", atLeast: 2_000 },
  },
];

/**
 * P4: reads of one job, and of a list of the newest 20. Starts several forge-servers, one after the
 * other, and measures each of them: the rates differ by up to a third between two servers, but
 * change little while one server runs.
 */
export async function measureReads(stage: Stage, scale: Scale): Promise<Row[]> {
  const servers: Measured[][] = [];
  while (servers.length < scale.readServers) servers.push(await measureReadsOnce(stage, scale));
  return READS.map((described, at) =>
    rowOf(
      described,
      servers.flatMap((reads) => reads[at] ?? []),
    ),
  );
}

/** The reads of one server, in the order of READS. */
async function measureReadsOnce(stage: Stage, scale: Scale): Promise<Measured[]> {
  const { expressUrl } = stage;
  const forge = await stage.startForge();
  try {
    const ids = await completeJobs(stage, forge, JOBS);
    const peerIds = await insertPeerJobs(expressUrl, JOBS);
    const get = (path: string): HttpCall => ({ method: "GET", path });
    const at = { url: forge.url, key: forge.userKey };
    const peer = { url: expressUrl, key: "", name: "express + pg SELECT" };
    const compare = (calls: HttpCall[], peerCalls: HttpCall[]): Promise<Measured> =>
      compareRates(stage, scale.readRounds, scale, {
        forge: { ...at, calls },
        peer: { ...peer, calls: peerCalls },
      });
    return [
      await compare(
        ids.map((id) => get(`/api/jobs/${id}`)),
        peerIds.map((id) => get(`/jobs/${id}`)),
      ),
      await compare([LIST_OF_20], [get("/jobs")]),
      await compare((await cursorsOf(forge)).map(listAfter), [get("/jobs")]),
    ];
  } finally {
    await forge.stop();
  }
}

/** Cursors of pages that have at least 20 jobs each. */
async function cursorsOf({ url, userKey }: Forge): Promise<string[]> {
  const user = new ApiClient(url, userKey);
  const cursors: string[] = [];
  let after = "";
  while (cursors.length < JOBS - 20) {
    const page = await user.get<{ next_cursor: string }>(`/api/jobs?limit=1${after}`);
    cursors.push(page.next_cursor);
    after = `&after=${page.next_cursor}`;
  }
  return cursors;
}

const listAfter = (cursor: string): HttpCall => ({
  ...LIST_OF_20,
  path: `${LIST_OF_20.path}&after=${cursor}`,
});

interface Target {
  url: string;
  key: string;
  calls: HttpCall[];
}

interface Measured {
  rounds: Required<Rounds>;
  generatorShare: number;
}

async function compareRates(
  { generator }: Stage,
  rounds: number,
  { seconds, warmUpSeconds }: Scale,
  given: { connections?: number; forge: Target; peer: Target & { name: string } },
): Promise<Measured> {
  const { connections = CONNECTIONS } = given;
  const rate = async ({ url, key, calls }: Target, forS = seconds): Promise<number> => {
    const options = { url, key, calls, connections, seconds: forS };
    return (await generator.run("sendRequests", options)).perSecond;
  };
  const { forge, peer } = given;
  for (const target of [forge, peer]) await rate(target, warmUpSeconds);
  const measured = await interleave(rounds, () => rate(forge), {
    name: peer.name,
    measure: () => rate(peer),
  });
  return { rounds: measured, generatorShare: generator.takeMaxCpuShare() };
}

/** The row of all rounds together. */
function rowOf(described: Described, measured: Measured[]): Row {
  const rounds = measured.map((each) => each.rounds);
  const joined = {
    forge: rounds.flatMap(({ forge }) => forge),
    peer: {
      name: rounds[0]?.peer.name ?? "",
      values: rounds.flatMap(({ peer }) => peer.values),
    },
  };
  const generatorShare = Math.max(...measured.map((each) => each.generatorShare));
  return resultRow(described, joined, { generatorShare });
}

const call = (path: string, body: object): HttpCall => ({ method: "POST", path, body });

async function sendOnce(stage: Stage, url: string, key: string, calls: HttpCall[]): Promise<void> {
  const options = { url, key, calls, connections: 16, count: calls.length };
  await stage.generator.run("sendRequests", options);
  stage.generator.takeMaxCpuShare();
}
