import { connect, type Socket } from "node:net";
import { type Answer, ApiClient, type Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { createTenant, usesOf } from "../support/tenants";

const PER_MINUTE = 600;
const BURST = 200;
const CAPS = {
  waiting_requests: 3,
  waiting_polls: 4,
  open_uploads: 2,
  keys: 40,
  sessions: 6,
  workers: 5,
  queued_jobs: 12,
  queued_shapes: 4,
  stored_bytes: 100,
};

let forge: Forge;

beforeAll(async () => {
  const caps = Object.entries(CAPS).map(([name, n]) => [`FORGE_MAX_${name.toUpperCase()}`, `${n}`]);
  forge = await startForge({
    ...Object.fromEntries(caps),
    FORGE_RATE_LIMIT_PER_MINUTE: String(PER_MINUTE),
    FORGE_RATE_LIMIT_BURST: String(BURST),
  });
});

afterAll(async () => {
  await forge?.stop();
});

const AUDIT = { dataset_uri: "s3://b/d.parquet" };

const many = <T>(n: number, make: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, (_, at) => make(at)));

const refused = (answers: Answer[]): Answer[] => answers.filter(({ status }) => status >= 400);

/** The expected error of each operation that would exceed this cap. */
function refusalOf(status: 409 | 429, cap: keyof typeof CAPS) {
  const variable = `FORGE_MAX_${cap.toUpperCase()}`;
  return {
    status,
    body: {
      error: {
        code: "quota_exceeded",
        message: expect.stringContaining(variable),
        details: { cap, variable, limit: CAPS[cap], used: expect.any(Number) },
      },
    },
  };
}

interface Made {
  key_id: string;
  key: string;
}

test("thirty keys of a tenant share the request limit of one", async () => {
  const ann = await createTenant(forge, "ann");
  const keys = await many(30, () => ann.user.post<Made>("/api/auth/api-keys", {}));
  const clients = keys.map(({ key }) => new ApiClient(forge.stack.apiUrl, key));
  const began = performance.now();
  const answers = (
    await Promise.all(clients.map((api) => many(20, () => api.call("GET", "/api/billing/rates"))))
  ).flat();
  const seconds = (performance.now() - began) / 1000;
  const admitted = answers.filter(({ status }) => status === 200).length;
  expect(admitted + answers.filter(({ status }) => status === 429).length).toBe(600);
  expect(admitted).toBeLessThanOrEqual(BURST + Math.ceil((seconds * PER_MINUTE) / 60) + 1);
  // Other tenants are not affected.
  const other = await createTenant(forge, "other-than-ann");
  expect((await other.user.call("GET", "/api/billing/rates")).status).toBe(200);
});

test("a tenant has a maximum number of keys, even if requested at once; a revoked key frees its place", async () => {
  const tenant = await createTenant(forge, "keys");
  // The tenant already has a user key and a worker key.
  const answers = await many(60, () => tenant.user.call<Made>("POST", "/api/auth/api-keys", {}));
  const made = answers.filter(({ status }) => status === 201);
  expect(made).toHaveLength(CAPS.keys - 2);
  for (const answer of refused(answers)) expect(answer).toMatchObject(refusalOf(409, "keys"));
  expect(await usesOf(tenant)).toMatchObject({ keys: CAPS.keys });
  await tenant.user.call("DELETE", `/api/auth/api-keys/${made[0]?.body.key_id}`);
  expect((await tenant.user.call("POST", "/api/auth/api-keys", {})).status).toBe(201);
});

test("a tenant has a maximum number of workers, which may register again and be removed", async () => {
  const tenant = await createTenant(forge, "fleet");
  const workers = Array.from({ length: 12 }, (_, n) => tenant.worker(`fleet-${n}`));
  const answers = await Promise.all(workers.map((worker) => worker.register()));
  expect(refused(answers)).toHaveLength(workers.length - CAPS.workers);
  for (const answer of refused(answers)) expect(answer).toMatchObject(refusalOf(409, "workers"));
  const registered = workers.filter((_, n) => answers[n]?.status === 201);
  const [first] = registered;
  expect((await first?.register())?.status).toBe(201);
  await tenant.user.call("DELETE", `/api/workers/${first?.id}`);
  expect((await tenant.worker("fleet-new").register()).status).toBe(201);
  expect((await first?.register())?.status).toBe(409);
  expect(await usesOf(tenant)).toMatchObject({ workers: CAPS.workers });
});

test("a tenant has a maximum number of queued jobs and requirement groups, independent of others", async () => {
  const tenant = await createTenant(forge, "queue");
  // Submit in sequence: the server may not have counted a concurrent submission yet.
  const groups: Answer[] = [];
  for (let n = 1; n <= 8; n++) {
    const body = { ...AUDIT, resources: { memory_gb: n } };
    groups.push(await tenant.user.call("POST", "/api/jobs/audit", body));
  }
  expect(refused(groups)).toHaveLength(8 - CAPS.queued_shapes);
  for (const answer of refused(groups)) {
    expect(answer).toMatchObject(refusalOf(429, "queued_shapes"));
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const same: Answer[] = [];
  for (let n = 0; n < 12; n++) {
    const body = { ...AUDIT, resources: { memory_gb: 1 } };
    same.push(await tenant.user.call("POST", "/api/jobs/audit", body));
  }
  for (const answer of refused(same)) expect(answer).toMatchObject(refusalOf(429, "queued_jobs"));
  const jobs = CAPS.queued_jobs;
  expect(refused(same)).toHaveLength(12 - (jobs - CAPS.queued_shapes));
  expect(await usesOf(tenant)).toMatchObject({ queued_jobs: jobs });
  const neighbour = await createTenant(forge, "beside-queue");
  const { job_id } = await neighbour.user.submit("audit", AUDIT);
  const { jobs: waiting } = await tenant.user.get<{ jobs: { job_id: string }[] }>("/api/jobs");
  for (const each of waiting) await tenant.user.post(`/api/jobs/${each.job_id}/cancel`, {});
  // The server's count of queued jobs may be a second old, so repeat the submission.
  const next = await waitFor("room", async () => {
    const { status, body } = await tenant.user.call<Job>("POST", "/api/jobs/audit", AUDIT);
    return status === 201 && body;
  });
  await tenant.user.post(`/api/jobs/${next.job_id}/cancel`, {});
  await neighbour.user.post(`/api/jobs/${job_id}/cancel`, {});
  await forge.endTest();
});

test("a pipeline's step waits until the queue has room", async () => {
  const tenant = await createTenant(forge, "steps");
  const filling = await many(CAPS.queued_jobs, () => tenant.user.submit("audit", AUDIT));
  const begin = async () => {
    const { pipeline_id: id } = await tenant.user.post<{ pipeline_id: string }>("/api/pipelines", {
      steps: [{ name: "a", job_type: "audit", payload: AUDIT }],
    });
    await waitFor("the step to be refused", async () => {
      const { raw } = await forge.ctx.temporal.workflow.getHandle(`pipeline:${id}`).describe();
      const failures = raw.pendingActivities?.map(({ lastFailure }) => lastFailure?.message ?? "");
      return failures?.some((message) => message.includes("FORGE_MAX_QUEUED_JOBS"));
    });
    return id;
  };
  const show = (id: string) =>
    tenant.user.get<{ status: string; steps: { job_id: string | null }[] }>(`/api/pipelines/${id}`);
  const cancel = async (id: string): Promise<void> => {
    await tenant.user.post(`/api/pipelines/${id}/cancel`, {});
    await waitFor("its end", async () => (await show(id)).status === "cancelled");
  };
  const [kept, left] = [await begin(), await begin()];
  // A step that waits for room in the queue can be cancelled.
  await cancel(left);
  expect((await show(kept)).steps[0]?.job_id).toBeNull();
  for (const { job_id } of filling) await tenant.user.post(`/api/jobs/${job_id}/cancel`, {});
  await waitFor("the step's job", async () => (await show(kept)).steps[0]?.job_id != null);
  await cancel(kept);
  await forge.endTest();
});

test("a tenant's workers have a maximum number of waiting polls", async () => {
  const tenant = await createTenant(forge, "polls");
  const workers = Array.from({ length: CAPS.workers }, (_, n) => tenant.worker(`poll-${n}`));
  for (const worker of workers) await worker.register();
  const polls = workers.slice(0, CAPS.waiting_polls).map((worker) => worker.ask(20));
  await waitFor("the polls to wait", async () => {
    const { waiting_polls } = await usesOf(tenant);
    return waiting_polls === CAPS.waiting_polls;
  });
  const more = workers.at(-1)?.ask(20);
  await expect(more).rejects.toThrow(/HTTP 429 .*quota_exceeded/);
  // Other requests of the tenant, and polls of other tenants, don't count towards this cap.
  expect((await tenant.user.call("GET", "/api/jobs")).status).toBe(200);
  const neighbour = await createTenant(forge, "beside-polls");
  const worker = neighbour.worker("beside-poll");
  await worker.register();
  expect(await worker.ask(0.1)).toEqual({ job_id: null });
  const jobs = await Promise.all(polls.map(() => tenant.user.submit("audit", AUDIT)));
  await Promise.all(polls);
  for (const { job_id } of jobs) await tenant.user.post(`/api/jobs/${job_id}/cancel`, {});
});

/** Begins an upload, which stays unfinished until its socket is closed. */
function uploading(key: string): { socket: Socket; answer: Promise<string> } {
  const { hostname, port } = new URL(forge.stack.apiUrl);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  let text = "";
  const answer = new Promise<string>((resolve) => {
    socket.on("data", (part) => {
      text += part.toString();
    });
    socket.once("close", () => resolve(text));
  });
  socket.write(
    `POST /api/datasets HTTP/1.1\r\nHost: x\r\nX-Service-Api-Key: ${key}\r\n` +
      "Content-Type: text/csv\r\nContent-Length: 10000\r\n\r\na\n1\n",
  );
  return { socket, answer };
}

test("a tenant has a maximum number of open uploads", async () => {
  const tenant = await createTenant(forge, "uploads");
  const open = Array.from({ length: CAPS.open_uploads }, () => uploading(tenant.user.key));
  await waitFor("the uploads to be open", async () => {
    const { open_uploads } = await usesOf(tenant);
    return open_uploads === CAPS.open_uploads;
  });
  const third = uploading(tenant.user.key);
  const text = await third.answer;
  expect(text).toMatch(/^HTTP\/1\.1 429 [\s\S]*"quota_exceeded"[\s\S]*"open_uploads"/);
  for (const { socket } of open) socket.destroy();
  await waitFor("their places", async () => (await usesOf(tenant)).open_uploads === 0);
});

test("a tenant has a maximum number of stored bytes; beyond it datasets and jobs are refused", async () => {
  const tenant = await createTenant(forge, "bytes");
  const upload = async (): Promise<Answer> => {
    const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
      method: "POST",
      headers: { "x-service-api-key": tenant.user.key, "content-type": "text/csv" },
      body: `a\n${"x".repeat(CAPS.stored_bytes)}\n`,
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const first = await upload();
  expect(first.status).toBe(201);
  expect(await upload()).toMatchObject(refusalOf(409, "stored_bytes"));
  const job = await tenant.user.call("POST", "/api/jobs/audit", AUDIT);
  expect(job).toMatchObject(refusalOf(409, "stored_bytes"));
  const { artifact_id: id } = first.body as { artifact_id: string };
  await tenant.user.call("DELETE", `/api/artifacts/${id}`);
  expect((await upload()).status).toBe(201);
});

test("files of a running job count, and a worker at the limit may upload no more", async () => {
  const tenant = await createTenant(forge, "outputs");
  const { job_id: id } = await tenant.user.submit("audit", AUDIT);
  const worker = tenant.worker("outputs-box");
  await worker.register();
  const job = await worker.take();
  expect(await worker.upload(job, "a.parquet", "x".repeat(CAPS.stored_bytes))).toBe(201);
  expect(await worker.upload(job, "b.parquet", "x")).toBe(409);
  // The job still ends, and is billed.
  expect((await worker.complete(job)).status).toBe(200);
  expect((await untilEnded(tenant.user, id)).status).toBe("completed");
});

test("a key can't create one that expires later than itself", async () => {
  const { user } = await createTenant(forge, "expiry");
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  const late = new Date(Date.now() + 7_200_000).toISOString();
  const { key } = await user.post<Made>("/api/auth/api-keys", { expires_at: soon });
  const passing = new ApiClient(forge.stack.apiUrl, key);
  for (const body of [{}, { expires_at: null }, { expires_at: late }]) {
    expect(await passing.call("POST", "/api/auth/api-keys", body)).toMatchObject({
      status: 400,
      body: { error: { param: "expires_at", message: expect.stringContaining(soon) } },
    });
  }
  const made = await passing.call("POST", "/api/auth/api-keys", { expires_at: soon });
  expect(made.status).toBe(201);
});

test("revoking a key revokes all keys that it created, and ends their waiting polls", async () => {
  const tenant = await createTenant(forge, "revoked");
  const child = await tenant.user.post<Made>("/api/auth/api-keys", { name: "child" });
  const asChild = new ApiClient(forge.stack.apiUrl, child.key);
  const grandchild = await asChild.post<Made>("/api/auth/api-keys", { scope: "worker" });
  const box = new ApiClient(forge.stack.apiUrl, grandchild.key);
  const gpu = { name: "cpu", memory_gb: 0 };
  await box.post("/api/workers/register", { worker_id: "revoked-box", gpu, tags: [] });
  const poll = box.call("POST", "/api/workers/next_job", {
    worker_id: "revoked-box",
    wait_seconds: 50,
  });
  await waitFor("the poll to wait", async () => (await usesOf(tenant)).waiting_polls === 1);
  await tenant.user.call("DELETE", `/api/auth/api-keys/${child.key_id}`);
  expect((await poll).status).toBe(403);
  for (const api of [asChild, box]) {
    expect((await api.call("GET", "/api/auth/ping")).status).toBe(403);
  }
  expect((await tenant.user.call("GET", "/api/auth/ping")).status).toBe(200);
});

test("limits are shown with their usage; an admin names the tenant", async () => {
  const tenant = await createTenant(forge, "shown");
  const answer = await forge.admin.get<{ limits: object[] }>("/api/limits?user_id=shown");
  expect(answer.limits).toEqual(
    expect.arrayContaining([
      { name: "keys", limit: CAPS.keys, used: 2, variable: "FORGE_MAX_KEYS" },
      {
        name: "requests_per_minute",
        limit: PER_MINUTE,
        used: null,
        variable: "FORGE_RATE_LIMIT_PER_MINUTE",
      },
    ]),
  );
  expect(answer.limits).toHaveLength(Object.keys(CAPS).length + 2);
  const theirs = await tenant.user.call("GET", "/api/limits?user_id=ann");
  expect(theirs.status).toBeGreaterThanOrEqual(400);
});
