/**
 * Runs every client through a real TCP proxy that cuts connections and withholds or delays
 * responses. Each call must have the right result, take effect once, and end.
 */

import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { EACH_REQUEST as STEPS } from "../support/each-request";
import { recordExchanges } from "../support/exchanges";
import { differences, filledIn } from "../support/expectations";
import { FAULTS, type Fault, FaultyProxy } from "../support/faulty-proxy";
import { type Forge, startForge } from "../support/forge";
import { close, listen } from "../support/local-server";
import { kept, type Outcome, type Step } from "../support/sdk-contract";
import { SdkFleet, type Tenant } from "../support/sdk-fleet";
import { DIFFERENT_CLIENTS, RUNNERS } from "../support/sdk-runners";
import { slowTest } from "../support/slow";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let fleet: SdkFleet;

const BURST = 60;

beforeAll(async () => {
  forge = await startForge(
    {
      // Two requests a second: even the slowest client on a busy machine sends more, so it gets a
      // refusal.
      FORGE_RATE_LIMIT_PER_MINUTE: "120",
      FORGE_RATE_LIMIT_BURST: String(BURST),
    },
    { own: ["server"] },
  );
  fleet = await SdkFleet.start(forge);
}, 300_000);

afterAll(async () => {
  try {
    await fleet?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

const CLIENTS = Object.keys(RUNNERS);

/**
 * Each combination is a client and a function that returns the fault for step n:
 * - In `npm run test:slow`, each client is combined with each fault, and every step has that fault.
 * - Otherwise, there is one combination for each of DIFFERENT_CLIENTS. The steps have the faults in
 *   turn, and each client begins with a different fault.
 *
 * `eachOnceWith` replaces the fault "silent" in uploads.
 */
const COMBINATIONS: [string, (n: number) => Fault][] = process.env.TEST_SLOW
  ? FAULTS.flatMap((fault) =>
      CLIENTS.map((client): [string, (n: number) => Fault] => [client, () => fault]),
    )
  : DIFFERENT_CLIENTS.map((client, shift): [string, (n: number) => Fault] => [
      client,
      (n) => FAULTS[(n + shift) % FAULTS.length] ?? "slow",
    ]);

test.each(COMBINATIONS.map(([client, faultOf], n) => [client, n, faultOf] as const))(
  "%s: all requests with faults: combination %i",
  async (client, _n, faultOf) => eachOnceWith(faultOf, client),
  90_000,
);

async function eachOnceWith(faultOf: (n: number) => Fault, client: string): Promise<void> {
  const tenant = await fleet.newTenant();
  const { outcomes, done } = await runThrough(client, tenant, STEPS, (n) => {
    const fault = faultOf(n);
    // Don't withhold an upload's response: the client would wait longer than this test may take.
    return fault === "silent" && STEPS[n]?.call === "datasets.upload" ? "slow" : fault;
  });
  let { variables } = tenant;
  const wrong = STEPS.flatMap((step, n) => {
    const { error, result } = outcomes[n] ?? {};
    variables = { ...variables, ...kept(step, result) };
    const name = `${client}: ${step.call}`;
    if (step.error) return differences(step.error, error, name);
    if (error) return [`${name}: ${JSON.stringify(error)}`];
    return differences(filledIn(step.result, variables), result, name);
  });
  expect(wrong).toEqual([]);
  // Each step must have met its fault.
  expect(done).toHaveLength(STEPS.length);
  const counts = { jobs: 2, pipelines: 1, artifacts: 1, api_keys: 1 };
  expect(await belongings(tenant)).toEqual(counts);
}

test.each(CLIENTS)(
  "%s: a lost response to a key creation is an error without a retry",
  async (client) => {
    const tenant = await fleet.newTenant();
    const step = { call: "api_keys.create", args: ["box"] };
    const { outcomes } = await runThrough(client, tenant, [step, step], (n) =>
      n === 0 ? "cut after" : "slow",
    );
    expect(outcomes[0]).toMatchObject({ error: { type: "ForgeHTTPError", status: null } });
    expect(outcomes[1]).toMatchObject({ result: { name: "box", key: expect.any(String) } });
    // The key that the tenant had before, and one key from each of the two creations.
    expect((await belongings(tenant)).api_keys).toBe(3);
  },
);

slowTest.each(DIFFERENT_CLIENTS)(
  "%s: many refusals by the rate limit",
  async (client) => {
    const tenant = await fleet.newTenant();
    const recorder = await recordExchanges(forge.stack.apiUrl);
    try {
      const { api_key } = await forge.admin.post<{ api_key: { key: string } }>("/api/admin/users", {
        name: "busy",
      });
      const keys = { ...tenant.keys, user: api_key.key };
      const steps: Step[] = Array.from({ length: 20 }, () => ({ call: "service.ping" }));
      const sameKey = new ApiClient(forge.stack.apiUrl, api_key.key);
      const { url, stepUrl } = recorder;
      const statusesSeen = () => recorder.steps.flat().map(({ answer }) => answer.status);
      let isOver = false;
      // Use up the tenant's rate limit, so that even a slow client is refused. Stop after the
      // client's first refusal.
      const spending = (async () => {
        while (!isOver && !statusesSeen().includes(429)) {
          await Promise.all(
            Array.from({ length: BURST }, () => sameKey.call("GET", "/api/auth/ping")),
          );
        }
      })();
      const [outcomes = []] = await run(client, [
        { steps, base_url: url, step_url: stepUrl, keys, variables: {} },
      ]).finally(() => {
        isOver = true;
      });
      await spending;
      expect(outcomes.filter((outcome) => outcome.error)).toEqual([]);
      expect(statusesSeen().filter((status) => status === 200)).toHaveLength(steps.length);
      expect(statusesSeen()).toContain(429);
    } finally {
      await recorder.close();
    }
  },
  90_000,
);

/** Runs steps through a proxy that applies `faultOf(n)` to the first request of step n. */
async function runThrough(
  client: string,
  { keys, variables }: Tenant,
  steps: Step[],
  faultOf: (n: number) => Fault,
): Promise<{ outcomes: Outcome[]; done: Fault[] }> {
  const proxy = await FaultyProxy.start(() => forge.stack.apiUrl);
  let begun = 0;
  const control = createServer((_request, reply) => {
    proxy.ahead.splice(0, Infinity, faultOf(begun++));
    reply.end();
  });
  try {
    const [outcomes = []] = await run(client, [
      {
        steps,
        base_url: proxy.url,
        step_url: await listen(control),
        keys,
        variables,
        limits: { timeout: 1 },
      },
    ]);
    return { outcomes, done: proxy.done };
  } finally {
    await close(control);
    await proxy.stop();
  }
}

const run = async (client: string, assignments: Parameters<(typeof RUNNERS)[string]>[0]) => {
  const runner = RUNNERS[client];
  if (!runner) throw new Error(`there is no client ${client}`);
  return await runner(assignments);
};

async function belongings({ keys }: Tenant): Promise<Record<string, number>> {
  const api = new ApiClient(forge.stack.apiUrl, keys.user);
  const counts: Record<string, number> = {};
  for (const [name, path] of [
    ["jobs", "/api/jobs"],
    ["pipelines", "/api/pipelines"],
    ["artifacts", "/api/artifacts?deleted=true"],
    ["api_keys", "/api/auth/api-keys"],
  ] as const) {
    counts[name] = (await api.get<Record<string, unknown[]>>(path))[name]?.length ?? 0;
  }
  return counts;
}

const LINES = Array.from({ length: 400 }, (_, n) => `line ${n}`);

test("the server is killed while all clients wait and follow the log", async () => {
  const worker = await forge.worker("logging");
  await worker.register(undefined, { tags: ["logging"] });
  worker.startHeartbeats();
  const proxy = await FaultyProxy.start(() => forge.stack.apiUrl);
  const control = createServer((_request, reply) => void reply.end());
  try {
    const { job_id } = await forge.user.submit("audit", {
      dataset_uri: "s3://team-data/followed.parquet",
      resources: { tags: ["logging"] },
    });
    const keys = { user: forge.stack.keys.userKey };
    const follow = async (client: string, step: Step): Promise<unknown> => {
      const [outcomes = []] = await run(client, [
        {
          steps: [step],
          base_url: proxy.url,
          step_url: await stepUrl,
          keys,
          variables: { job: job_id },
        },
      ]);
      return outcomes[0]?.error ?? outcomes[0]?.result;
    };
    const stepUrl = listen(control);
    const followed = Promise.all(
      CLIENTS.flatMap((client) => [
        follow(client, { call: "wait", args: ["${job}"], options: { timeout: 60 } }),
        follow(client, { call: "jobs.logs", args: ["${job}"], options: { follow: true } }),
      ]),
    );
    const job = await worker.take();
    await append(worker, job, 0, 100);
    // Wait until all clients are connected, so that they follow the job before the server is
    // killed.
    await waitFor("all clients to listen", () => proxy.connections >= 2 * CLIENTS.length);
    await append(worker, job, 100, 200);
    await forge.stack.server?.kill();
    await sleep(1_500);
    await forge.stack.startServer();
    await append(worker, job, 200, 400);
    await worker.complete(job);
    for (const [n, found] of (await followed).entries()) {
      if (n % 2 === 0) expect(found).toMatchObject({ job_id, status: "completed" });
      else expect(found).toEqual(LINES);
    }
  } finally {
    worker.stopHeartbeats();
    await close(control);
    await proxy.stop();
  }
}, 120_000);

/** Appends the elements of LINES from index `first` to `end` - 1 to the job's log. */
async function append(
  worker: TestWorker,
  job: DispatchedJob,
  first: number,
  end: number,
): Promise<void> {
  const size = (count: number): number =>
    Buffer.byteLength(
      LINES.slice(0, count)
        .map((line) => `${line}\n`)
        .join(""),
    );
  const text = LINES.slice(first, end)
    .map((line) => `${line}\n`)
    .join("");
  const url = new URL(`/worker/jobs/${job.job_id}/log`, forge.stack.apiUrl);
  url.searchParams.set("worker_id", worker.id);
  url.searchParams.set("attempt", String(job.attempt));
  const answer = await fetch(url, {
    method: "PATCH",
    headers: {
      "x-service-api-key": forge.stack.keys.workerKey,
      "content-type": "text/plain",
      "content-range": `bytes ${size(first)}-${size(end) - 1}/*`,
    },
    body: text,
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}
