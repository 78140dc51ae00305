import { ApiClient } from "../../api-client";
import type { HttpCall } from "./http-connection";
import { LIST_OF_20 } from "./measure-latency";
import { completeJobs, insertPeerJobs } from "./prepared-jobs";
import { interleave } from "./rounds";
import { type Row, resultRow } from "./rows";
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
    return [
      await compareRates(stage, scale, {
        described: {
          id: "P3",
          what: `heartbeats of ${scale.fleet.toLocaleString("en")} workers`,
          unit: "/s",
          goal: { of: "ratio", atLeast: 3 },
        },
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
      }),
    ];
  } finally {
    await forge.stop();
  }
}

const JOBS = 100;

/** P4: reads of one job, and of a list of the newest 20. */
export async function measureReads(stage: Stage, scale: Scale): Promise<Row[]> {
  const { expressUrl } = stage;
  const forge = await stage.startForge();
  try {
    const ids = await completeJobs(stage, forge, JOBS);
    const peerIds = await insertPeerJobs(expressUrl, JOBS);
    const get = (path: string): HttpCall => ({ method: "GET", path });
    const at = { url: forge.url, key: forge.userKey };
    const peer = { url: expressUrl, key: "", name: "express + pg SELECT" };
    const compareLists = (what: string, calls: HttpCall[]): Promise<Row> =>
      compareRates(stage, scale, {
        described: { id: "P4", what, unit: "/s", goal: { of: "forge", atLeast: 2_000 } },
        forge: { ...at, calls },
        peer: { ...peer, calls: [get("/jobs")] },
      });
    return [
      await compareRates(stage, scale, {
        described: {
          id: "P4",
          what: "GET of a completed job",
          unit: "/s",
          goal: { of: "ratio", atLeast: 0.9 },
        },
        forge: { ...at, calls: ids.map((id) => get(`/api/jobs/${id}`)) },
        peer: { ...peer, calls: peerIds.map((id) => get(`/jobs/${id}`)) },
      }),
      await compareLists("list of 20 completed jobs, equal requests", [LIST_OF_20]),
      await compareLists(
        "the same, each request from another position",
        (await cursorsOf(forge)).map(listAfter),
      ),
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

async function compareRates(
  { generator }: Stage,
  { requestRounds, seconds, warmUpSeconds }: Scale,
  given: {
    described: Pick<Row, "id" | "what" | "unit" | "goal">;
    connections?: number;
    forge: Target;
    peer: Target & { name: string };
  },
): Promise<Row> {
  const { connections = CONNECTIONS } = given;
  const rate = async ({ url, key, calls }: Target, forS = seconds): Promise<number> => {
    const options = { url, key, calls, connections, seconds: forS };
    return (await generator.run("sendRequests", options)).perSecond;
  };
  const { forge, peer } = given;
  for (const target of [forge, peer]) await rate(target, warmUpSeconds);
  const result = await interleave(requestRounds, () => rate(forge), {
    name: peer.name,
    measure: () => rate(peer),
  });
  return resultRow(given.described, result, { generatorShare: generator.takeMaxCpuShare() });
}

const call = (path: string, body: object): HttpCall => ({ method: "POST", path, body });

async function sendOnce(stage: Stage, url: string, key: string, calls: HttpCall[]): Promise<void> {
  const options = { url, key, calls, connections: 16, count: calls.length };
  await stage.generator.run("sendRequests", options);
  stage.generator.takeMaxCpuShare();
}
