import pg from "pg";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { EventStream } from "../support/event-stream";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { startPipeline, untilPipeline } from "../support/pipelines";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_MAX_WAITING_REQUESTS: "5" });
});

afterAll(async () => {
  await forge?.stop();
});

const open = async (api: ApiClient, lastEventId?: string): Promise<EventStream> => {
  const stream = await EventStream.open(api, "/api/events", lastEventId);
  await waitFor("the stream to be ready", () =>
    stream.events.some(({ event }) => event === "ready"),
  );
  return stream;
};

const ready = ({ events }: EventStream) => events.find(({ event }) => event === "ready");

/**
 * Adds the event of a status change without changing the job's row. The scheduler would correct a
 * status that does not agree with the fleet, and this would add another event.
 */
const ADD_EVENT = `
  insert into job_events (job_id, user_id, status, attempts)
  select job_id, user_id, 'provisioning_worker', attempts from jobs where job_id = $1`;

/**
 * Submits a job that waits, and inserts 2,500 events for it. A stream that has missed this many
 * events can't be resumed. Returns the job's id.
 */
async function submitWithManyEvents(user: ApiClient): Promise<string> {
  const { job_id } = await user.submit("train", {
    dataset_id: "d",
    model: "m",
    resources: { gpu: 8 },
  });
  await execute(
    forge.ctx.pool,
    `insert into job_events (job_id, user_id, status, attempts)
     select job_id, user_id, 'pending', 0 from jobs, generate_series(1, 2500) where job_id = $1`,
    [job_id],
  );
  return job_id;
}

const jobsOf = ({ events }: EventStream): [unknown, unknown][] =>
  events
    .filter(({ event }) => event === "job")
    .map(({ data }): [unknown, unknown] => [data.job_id, data.status]);

test("changes of all jobs of the tenant, and of no other tenant's, in every process", async () => {
  const { user, worker } = await createTenant(forge, "watched");
  const other = new ApiClient(await forge.stack.startAnotherServer(), user.key);
  const { user: stranger } = await createTenant(forge, "unwatched");
  const streams = [await open(user), await open(other)];
  const strange = await open(stranger);
  const admins = await open(forge.admin);
  expect(streams.map((stream) => ready(stream)?.data)).toEqual([
    { resumed: false },
    { resumed: false },
  ]);
  const own = worker("watched-worker");
  await own.register();
  const { job_id } = await user.submit("audit", AUDIT);
  await own.complete(await own.take());
  await untilEnded(user, job_id);
  const expected = ["pending", "assigned", "running", "completed"].map((status) => [
    job_id,
    status,
  ]);
  for (const stream of [...streams, admins]) {
    await waitFor("its end", () => jobsOf(stream).some(([, status]) => status === "completed"));
    expect(jobsOf(stream).filter(([id]) => id === job_id)).toEqual(expected);
  }
  expect(streams[0]?.events.find(({ event }) => event === "worker")?.data).toMatchObject({
    worker_id: "watched-worker",
    status: "idle",
  });
  expect(streams[0]?.events.find(({ event }) => event === "job")).toMatchObject({
    id: expect.stringMatching(/^[0-9]+$/),
    data: { job_type: "audit", pipeline_id: null, attempts: 0, error_code: null },
  });
  expect(strange.events.filter(({ event }) => event !== "ready")).toEqual([]);
  for (const stream of [...streams, strange, admins]) stream.close();
});

test("a resumed stream misses nothing, not even late commits", async () => {
  const { user } = await createTenant(forge, "resuming");
  const first = await open(user);
  // This transaction gets its event id first, and commits after a transaction with a later id.
  const late = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await late.connect();
  const large = { dataset_id: "d", model: "m", resources: { gpu: 8 } };
  const slow = await user.submit("train", large);
  await waitFor("its event", () => jobsOf(first).length === 1);
  await late.query("begin");
  await late.query(ADD_EVENT, [slow.job_id]);
  const quick = await user.submit("train", large);
  await waitFor("the later event", () => jobsOf(first).length === 2);
  first.close();
  const lastId = first.events.at(-1)?.id;
  await late.query("commit");
  await late.end();
  const second = await open(user, lastId);
  expect(ready(second)?.data).toEqual({ resumed: true });
  expect(jobsOf(second)).toContainEqual([slow.job_id, "provisioning_worker"]);
  // The second stream may repeat events of the first stream. Except for these, its only job event
  // must be the late event.
  const known = new Set(first.events.map(({ id }) => id));
  const fresh = second.events.filter(({ event, id }) => event === "job" && !known.has(id));
  expect(fresh.map(({ data }) => [data.job_id, data.status])).toEqual([
    [slow.job_id, "provisioning_worker"],
  ]);
  expect(jobsOf(first).map(([id]) => id)).toEqual([slow.job_id, quick.job_id]);
  second.close();
});

test("an open stream gets late commits", async () => {
  const { user } = await createTenant(forge, "staying");
  const stream = await open(user);
  const large = { dataset_id: "d", model: "m", resources: { gpu: 8 } };
  const slow = await user.submit("train", large);
  const late = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await late.connect();
  await late.query("begin");
  await late.query(ADD_EVENT, [slow.job_id]);
  await user.submit("train", large);
  await waitFor("the later event", () => jobsOf(stream).length === 2);
  await late.query("commit");
  await late.end();
  await waitFor("the late one", () =>
    jobsOf(stream).some(([, status]) => status === "provisioning_worker"),
  );
  const ids = stream.events.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  stream.close();
});

test("a stream of many events is resumed, although the client has received them", async () => {
  const { user } = await createTenant(forge, "much");
  const job_id = await submitWithManyEvents(user);
  const first = await open(user);
  first.close();
  const second = await open(user, ready(first)?.id);
  expect(ready(second)?.data).toEqual({ resumed: true });
  second.close();
  await user.call("POST", `/api/jobs/${job_id}/cancel`);
});

test("a stream that missed too much reports it", async () => {
  const { user } = await createTenant(forge, "away");
  const first = await open(user);
  first.close();
  const job_id = await submitWithManyEvents(user);
  const second = await open(user, ready(first)?.id);
  expect(ready(second)?.data).toEqual({ resumed: false });
  // The stream continues with later events.
  await user.call("POST", `/api/jobs/${job_id}/cancel`);
  await waitFor("the next event", () => jobsOf(second).some(([, status]) => status === "failed"));
  second.close();
});

test("pipelines and workers", async () => {
  const { user, worker } = await createTenant(forge, "others");
  const stream = await open(user);
  const steps = [{ name: "audit", job_type: "audit", payload: AUDIT }];
  const id = await startPipeline(user, { steps, approvals: ["audit"] });
  await untilPipeline(user, id, ["waiting_approval"]);
  await user.call("POST", `/api/pipelines/${id}/cancel`);
  const own = worker("watched-too");
  await own.register();
  await user.call("POST", "/api/workers/watched-too/drain");
  await user.call("DELETE", "/api/workers/watched-too");
  const of = (kind: string, name: string): unknown[] =>
    stream.events
      .filter(({ event }) => event === kind)
      .map(({ data }) => [data[name], data.status]);
  await waitFor(
    "all of it",
    () => of("worker", "worker_id").length === 3 && of("pipeline", "pipeline_id").length === 3,
  );
  expect(of("pipeline", "pipeline_id")).toEqual([
    [id, "running"],
    [id, "waiting_approval"],
    [id, "cancelled"],
  ]);
  expect(of("worker", "worker_id")).toEqual([
    ["watched-too", "idle"],
    ["watched-too", "idle"],
    ["watched-too", "dead"],
  ]);
  stream.close();
});

test("streams count against the limit, and end with their key", async () => {
  const { user } = await createTenant(forge, "limited");
  const { key, key_id } = await user.post<{ key: string; key_id: string }>(
    "/api/auth/api-keys",
    {},
  );
  const streams: EventStream[] = [];
  for (let n = 0; n < 5; n++) streams.push(await open(new ApiClient(user.baseUrl, key)));
  const refused = await user.call("GET", "/api/events");
  expect(refused).toMatchObject({
    status: 429,
    body: { error: { code: "quota_exceeded", details: { cap: "waiting_requests" } } },
  });
  await user.call("DELETE", `/api/auth/api-keys/${key_id}`);
  await Promise.all(streams.map((stream) => stream.ended));
});

test("an invalid id is refused", async () => {
  const answer = await forge.user.call("GET", "/api/events", undefined, { "last-event-id": "x1" });
  expect(answer).toMatchObject({ status: 400, body: { error: { param: "Last-Event-ID" } } });
});
