/**
 * A worker key can be limited to a number of workers. The key of one machine can't act for another.
 */

import { ApiClient } from "../../dev/api-client";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import { type DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let user: ApiClient;

beforeAll(async () => {
  forge = await startForge();
  ({ user } = await createTenant(forge, "owner"));
});

afterAll(async () => {
  await forge?.stop();
});

interface MadeKey {
  key_id: string;
  key: string;
  workers: number | null;
  serving_hosts: string[];
}

const makeKey = async (more: object = { workers: 1 }): Promise<MadeKey> =>
  await user.post("/api/auth/api-keys", { name: "box", scope: "worker", ...more });

async function boxOf(id: string, { key }: MadeKey): Promise<TestWorker> {
  const worker = new TestWorker(new ApiClient(forge.stack.apiUrl, key), id);
  const { status } = await worker.register();
  if (status !== 201) throw new Error(`${id}: ${status}`);
  return worker;
}

const audit = { dataset_uri: "s3://bucket/data.parquet" };

test("a key for one worker is shown as such, and registers only one", async () => {
  const made = await makeKey();
  expect(made).toMatchObject({ workers: 1, serving_hosts: [] });
  const box = await boxOf("one", made);
  expect((await box.register()).status).toBe(201);
  const second = new TestWorker(new ApiClient(forge.stack.apiUrl, made.key), "second");
  expect(await second.register()).toMatchObject({
    status: 409,
    body: { error: { code: "quota_exceeded", param: "worker_id" } },
  });
  const { api_keys: keys } = await user.get<{ api_keys: MadeKey[] }>("/api/auth/api-keys");
  expect(keys.find(({ key_id: id }) => id === made.key_id)).toMatchObject({ workers: 1 });
});

test("of two workers that register at once with a key for one, only one succeeds", async () => {
  const { key } = await makeKey();
  const api = new ApiClient(forge.stack.apiUrl, key);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => new TestWorker(api, `race-${n}`).register()),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)]);
});

test("a machine's key can't act for another machine", async () => {
  const victim = await boxOf("victim", await makeKey());
  const thief = await makeKey();
  await boxOf("thief", thief);
  const { job_id: jobId } = await user.submit("audit", audit);
  const job = await victim.take();
  expect(job.job_id).toBe(jobId);

  const asVictim = new TestWorker(new ApiClient(forge.stack.apiUrl, thief.key), "victim");
  expect(await asVictim.register()).toMatchObject({
    status: 409,
    body: { error: { code: "worker_id_taken" } },
  });
  await expect(asVictim.heartbeat()).rejects.toThrow("worker_not_registered");
  await expect(asVictim.ask()).rejects.toThrow("worker_not_registered");
  expect((await asVictim.complete(job)).status).toBe(404);
  expect((await asVictim.fail(job)).status).toBe(404);
  expect(await asVictim.upload(job, "scored.parquet", "stolen")).toBe(404);
  const query = `worker_id=victim&attempt=${job.attempt}`;
  for (const [method, path] of [
    ["PATCH", `/worker/jobs/${jobId}/log?${query}`],
    ["GET", `/worker/jobs/${jobId}/inputs/dataset_uri/data.parquet?${query}`],
    ["PUT", `/worker/jobs/${jobId}/checkpoints/step.pt?${query}`],
  ] as const) {
    const response = await fetch(`${forge.stack.apiUrl}${path}`, {
      method,
      headers: {
        "x-service-api-key": thief.key,
        ...(method === "GET" ? {} : { "content-type": "application/octet-stream" }),
        ...(method === "PATCH" ? { "content-range": "bytes 0-4/*" } : {}),
      },
      ...(method === "GET" ? {} : { body: "stole" }),
    });
    expect([path, response.status]).toEqual([path, 404]);
    await response.arrayBuffer();
  }

  // The server rejects heartbeats for `victim` that are sent with the key of `thief`. They must not
  // block the heartbeats that `victim` sends with its own key at the same moment.
  const beats = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? asVictim : victim).heartbeat()),
  );
  expect(beats.map(({ status }) => status)).toEqual(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? "rejected" : "fulfilled")),
  );
  expect((await victim.complete(job)).status).toBe(200);
  expect((await untilEnded(user, jobId)).status).toBe("completed");
});

test("another machine with a key for any worker can't act on an attempt dispatched with a token", async () => {
  const [own, thief] = [await makeKey({}), await makeKey({})];
  const apiOf = ({ key }: { key: string }) => new ApiClient(forge.stack.apiUrl, key);
  await new TestWorker(apiOf(own), "guarded").register();
  await new TestWorker(apiOf(own), "plain").register();
  const poll = (id: string, by: { key: string }, more: object = {}): Promise<DispatchedJob> =>
    apiOf(by).post<DispatchedJob>("/worker/next_job", { worker_id: id, ...more });
  const send = async (job: DispatchedJob, id: string, by: { key: string }, token?: string) => {
    const ways = [
      ["PATCH", "log"],
      ["GET", "inputs/dataset_uri/data.parquet"],
      ["PUT", "checkpoints/step.pt"],
      ["PUT", "artifacts/scored.parquet"],
    ] as const;
    const statuses = ways.map(async ([method, path]) => {
      const query = `worker_id=${id}&attempt=${job.attempt}`;
      const url = `${forge.stack.apiUrl}/worker/jobs/${job.job_id}/${path}?${query}`;
      const response = await fetch(url, {
        method,
        headers: {
          "x-service-api-key": by.key,
          ...(token === undefined ? {} : { "x-forge-lease-token": token }),
          ...(method === "GET" ? {} : { "content-type": "application/octet-stream" }),
          ...(method === "PATCH" ? { "content-range": "bytes 0-4/*" } : {}),
        },
        ...(method === "GET" ? {} : { body: "bytes" }),
      });
      await response.arrayBuffer();
      return response.status;
    });
    return await Promise.all(statuses);
  };
  const finish = async (job: DispatchedJob, id: string, by: { key: string }, token?: string) => {
    const body = { worker_id: id, job_id: job.job_id, status: "completed", lease_token: token };
    return (await apiOf(by).call("POST", "/worker/job_result", body)).status;
  };
  const stale = [409, 409, 409, 409];
  // The request for the input gets a 404, because the job's dataset is not stored in Forge.
  const taken = [202, 404, 201, 201];
  const [token, other] = ["a".repeat(64), "b".repeat(64)];

  await user.submit("audit", audit);
  const guarded = await poll("guarded", own, { wait_seconds: 20, lease_token: token });
  // A poll that is repeated, for example after a lost response, gets the same job.
  expect(await poll("guarded", own, { lease_token: token })).toEqual(guarded);
  for (const guess of [undefined, other]) {
    expect((await poll("guarded", thief, { lease_token: guess })).job_id).toBeNull();
    expect(await send(guarded, "guarded", thief, guess)).toEqual(stale);
    expect(await finish(guarded, "guarded", thief, guess)).toBe(409);
  }
  expect(await send(guarded, "guarded", own, token)).toEqual(taken);
  const shown = JSON.stringify([guarded, await user.get(`/api/jobs/${guarded.job_id}`)]);
  expect(shown).not.toMatch(new RegExp(`lease_token|${token}`));
  expect(await finish(guarded, "guarded", own, token)).toBe(200);
  // A result that is repeated, for example after a lost response, is accepted again.
  expect(await finish(guarded, "guarded", own, token)).toBe(200);

  await user.submit("audit", audit);
  const plain = await poll("plain", own, { wait_seconds: 20 });
  expect(await poll("plain", own)).toEqual(plain);
  expect(await send(plain, "plain", own)).toEqual(taken);
  expect(await finish(plain, "plain", own)).toBe(200);
});

test("a machine gets another key only when its own is revoked", async () => {
  const [old, other] = [await makeKey(), await makeKey()];
  await boxOf("renewed", old);
  const again = new TestWorker(new ApiClient(forge.stack.apiUrl, other.key), "renewed");
  expect((await again.register()).status).toBe(409);
  await user.call("DELETE", `/api/auth/api-keys/${old.key_id}`);
  expect((await again.register()).status).toBe(201);
  expect((await again.heartbeat()).status).toBe("idle");
});

test("a key for any number of workers acts for all workers of its tenant", async () => {
  const bound = await boxOf("bound", await makeKey());
  const { key } = await makeKey({});
  const any = new TestWorker(new ApiClient(forge.stack.apiUrl, key), "bound");
  expect((await any.heartbeat()).status).toBe("idle");
  expect((await any.register()).status).toBe(201);
  // The worker's own key can still act for it. Another key that is limited to one worker can't.
  expect((await bound.heartbeat()).status).toBe("idle");
  expect((await bound.register()).status).toBe(201);
  const other = await makeKey();
  const stranger = new TestWorker(new ApiClient(forge.stack.apiUrl, other.key), "bound");
  expect((await stranger.register()).status).toBe(409);
});

test.each([
  [{ scope: "user", workers: 1 }, "workers"],
  [{ workers: 0 }, "workers"],
  [{ serving_hosts: ["gpu.example"] }, "serving_hosts"],
  [{ workers: 1, serving_hosts: ["http://gpu.example:80"] }, "serving_hosts.0"],
])("%j is refused with the field's name", async (given, param) => {
  const answer = await user.call("POST", "/api/auth/api-keys", { scope: "worker", ...given });
  expect(answer).toMatchObject({ status: 400, body: { error: { param } } });
});
