import { ApiClient } from "../../dev/api-client";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import { type HandedJob, TestWorker } from "../support/test-worker";

/** Keys for a number of workers: the key on one box is worth nothing for any other. */
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

test("a key for one worker is shown as such, and registers one", async () => {
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

test("of two workers that register at once with a key for one, one gets it", async () => {
  const { key } = await makeKey();
  const api = new ApiClient(forge.stack.apiUrl, key);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => new TestWorker(api, `race-${n}`).register()),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)]);
});

test("a box's key does nothing in the name of another box", async () => {
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

  // Heartbeats in its name, by the thief at the same moment, don't take the place of its own.
  const beats = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? asVictim : victim).heartbeat()),
  );
  expect(beats.map(({ status }) => status)).toEqual(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? "rejected" : "fulfilled")),
  );
  expect((await victim.complete(job)).status).toBe(200);
  expect((await untilEnded(user, jobId)).status).toBe("completed");
});

test("an attempt's files take its lease token, where its worker asked for one", async () => {
  const { key } = await makeKey({});
  const api = new ApiClient(forge.stack.apiUrl, key);
  for (const id of ["guarded", "plain"]) await new TestWorker(api, id).register();
  const poll = async (id: string, more: object): Promise<HandedJob> => {
    const { job_id: jobId } = await user.submit("audit", audit);
    const body = { worker_id: id, wait_seconds: 20, ...more };
    const job = await api.post<HandedJob>("/worker/next_job", body);
    expect(job.job_id).toBe(jobId);
    return job;
  };
  const send = async (id: string, job: HandedJob, token?: string): Promise<number[]> => {
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
          "x-service-api-key": key,
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
  const stale = [409, 409, 409, 409];
  // The dataset is in nobody's bucket.
  const taken = [202, 404, 201, 201];

  const guarded = await poll("guarded", { takes_lease_token: true });
  expect(guarded.lease_token).toMatch(/^forge_lease_[0-9a-f]{64}$/);
  // The same again, as after an answer that was lost.
  const body = { worker_id: "guarded", takes_lease_token: true };
  expect(await api.post("/worker/next_job", body)).toEqual(guarded);
  expect(await send("guarded", guarded)).toEqual(stale);
  const plain = await poll("plain", {});
  expect(plain.lease_token).toBeUndefined();
  expect(await send("plain", plain)).toEqual(taken);
  expect(await send("guarded", guarded, "forge_lease_wrong")).toEqual(stale);
  expect(await send("guarded", guarded, guarded.lease_token)).toEqual(taken);
  for (const { job_id: jobId } of [guarded, plain]) {
    const shown = JSON.stringify(await user.get(`/api/jobs/${jobId}`));
    expect(shown).not.toMatch(/forge_lease_|lease_token/);
    await user.post(`/api/jobs/${jobId}/cancel`, {});
  }
});

test("a box gets another key when its own is revoked, and not before", async () => {
  const [old, other] = [await makeKey(), await makeKey()];
  await boxOf("renewed", old);
  const again = new TestWorker(new ApiClient(forge.stack.apiUrl, other.key), "renewed");
  expect((await again.register()).status).toBe(409);
  await user.call("DELETE", `/api/auth/api-keys/${old.key_id}`);
  expect((await again.register()).status).toBe(201);
  expect((await again.heartbeat()).status).toBe("idle");
});

test("a key for any number acts for all workers of its tenant, as before", async () => {
  await boxOf("bound", await makeKey());
  const { key } = await makeKey({});
  const any = new TestWorker(new ApiClient(forge.stack.apiUrl, key), "bound");
  expect((await any.heartbeat()).status).toBe("idle");
  expect((await any.register()).status).toBe(201);
  // Which does not take it from its own key.
  const mine = await boxOf("mine", await makeKey());
  expect((await mine.heartbeat()).status).toBe("idle");
});

test.each([
  [{ scope: "user", workers: 1 }, "workers"],
  [{ workers: 0 }, "workers"],
  [{ serving_hosts: ["gpu.example"] }, "serving_hosts"],
  [{ workers: 1, serving_hosts: ["http://gpu.example:80"] }, "serving_hosts.0"],
])("%j is refused by name", async (given, param) => {
  const answer = await user.call("POST", "/api/auth/api-keys", { scope: "worker", ...given });
  expect(answer).toMatchObject({ status: 400, body: { error: { param } } });
});
