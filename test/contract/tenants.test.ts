/**
 * No response shows a tenant whether another tenant's id exists. The test derives its calls from
 * the OpenAPI document. In each operation, it replaces each id in the path, query or body by the
 * ids of another tenant's objects. The response must be the same as for an id that never existed.
 * The test covers a new operation as soon as the document contains the operation, and a new kind of
 * id as soon as a list returns such an id.
 */

import { ApiClient } from "../../dev/api-client";
import type { OpenApiDocument, Operation } from "../../platform/http/openapi";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { startPipeline } from "../support/pipelines";
import { createTenant, type Tenant } from "../support/tenants";
import { PIPELINES } from "./rows";

let forge: Forge;
let operations: NamedOperation[];
/** The tenant that owns the objects. */
let owner: Tenant;
/** The tenant that tries to access them. */
let stranger: Tenant;
/** The ids of the owner and of the stranger, by field name (`job_id`). */
let owned: Map<string, Set<string>>;
let strange: Map<string, Set<string>>;

interface NamedOperation {
  method: string;
  path: string;
  operation: Operation;
}

const ID = /_id$|^id$/;

let minted = 0;
/**
 * Returns an id that does not exist. Each call returns a different id, because the test also sends
 * the id to `registerWorker`, which creates a worker with this id.
 */
const unusedId = (): string => `never_${String(++minted).padStart(8, "0")}`;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_MAX_STREAM_S: "1",
    FORGE_MAX_POLL_S: "1",
  });
  owner = await createTenant(forge, "owner");
  stranger = await createTenant(forge, "stranger");
  const { paths } = await forge.user.get<OpenApiDocument>("/openapi.json");
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
  await createObjects(owner, "owner-worker");
  await createObjects(stranger, "stranger-worker");
  owned = await harvest(owner.user);
  // Only admins see this id, so `harvest` does not find it.
  const customer = { payment_customer_id: "cus_of_the_owner" };
  await forge.admin.call("PUT", "/api/admin/users/owner/payment-customer", customer);
  owned.set("payment_customer_id", new Set([customer.payment_customer_id]));
  strange = await harvest(stranger.user);
});

afterAll(async () => {
  await forge?.stop();
});

/** Creates objects of each kind: jobs, artifacts, bills, a key, a worker, a pipeline. */
async function createObjects({ user, worker }: Tenant, workerId: string): Promise<void> {
  const own = worker(workerId);
  await own.register();
  for (const type of ["audit", "distill", "evaluate", "deploy"]) {
    const body = { audit: AUDIT, distill: { dataset_id: "unlisted-dataset", teacher: "t" } }[type];
    await user.submit(type, body ?? { checkpoint_id: "unlisted-checkpoint" });
    const job = await own.take();
    await own.report(job, { status: "completed", result: { quality: {} } });
    await untilEnded(user, job.job_id);
  }
  await user.submit("train", { dataset_id: "unlisted-dataset", model: "m", resources: { gpu: 8 } });
  await user.post("/api/auth/api-keys", { name: "spare" });
  await startPipeline(user, PIPELINES.template);
}

/** Paths that `harvest` does not read: the OpenAPI document, and responses that are not JSON. */
const NO_LISTS = ["/openapi.json", "/api/billing/export", "/api/events"];

/** Every id that a tenant's lists return, by field name. */
async function harvest(user: ApiClient): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if (ID.test(name) && typeof inner === "string") {
        found.set(name, (found.get(name) ?? new Set()).add(inner));
      }
      collect(inner);
    }
  };
  for (const { method, path, operation } of operations) {
    const isList = method === "GET" && !path.includes("{") && !NO_LISTS.includes(path);
    if (!isList || operation["x-forge-scope"] !== "user") continue;
    collect((await user.call("GET", path)).body);
  }
  return found;
}

/**
 * Different field names for the same kind of id: a payload's dataset_id is the registry's
 * artifact_id.
 */
const ALSO: Record<string, string[]> = {
  dataset_id: ["artifact_id"],
  checkpoint_id: ["artifact_id"],
  model_id: ["artifact_id"],
};

function idsOf(of: Map<string, Set<string>>, name: string): string[] {
  return [name, ...(ALSO[name] ?? [])].flatMap((each) => [...(of.get(each) ?? [])]);
}

interface Attempt {
  path: string;
  body: unknown;
}

/**
 * For each parameter and body field that takes an id, returns a function that builds a call with a
 * given id in that place. The map's keys name the place: `job_id` in the path, `?job_id` in the
 * query, `body.job_id` in the body.
 */
function placesOf({ path, operation }: NamedOperation): Map<string, (id: string) => Attempt> {
  const places = new Map<string, (id: string) => Attempt>();
  const parameters = operation.parameters.filter(({ in: place }) => place !== "header");
  const inPath = parameters.filter((one) => one.in === "path").map(({ name }) => name);
  const bodies = Object.values(
    operation.requestBody?.content["application/json"]?.examples ?? {},
  ).map((example) => (example as { value: Record<string, unknown> }).value);
  const inQuery = parameters.filter((one) => one.in === "query");
  const own = (name: string): string => idsOf(strange, name)[0] ?? unusedId();
  /**
   * Fills in the path's parameters and the required query parameters. The parameter `chosen` gets
   * the value `id`. Every other id parameter gets an id of the stranger, or an unused id if the
   * stranger has none of that kind.
   */
  const fill = (chosen: string, id: string): string => {
    const filled = inPath.reduce(
      (known, name) =>
        known.replace(`{${name}}`, encodeURIComponent(name === chosen ? id : own(name))),
      path,
    );
    const query = inQuery
      .filter(({ name, required }) => required || `?${name}` === chosen)
      .map(({ name }) => {
        if (`?${name}` === chosen) return `${name}=${id}`;
        return `${name}=${ID.test(name) ? own(name) : 1}`;
      });
    return query.length > 0 ? `${filled}?${query.join("&")}` : filled;
  };
  const [firstBody] = bodies.map(withOwnIds);
  for (const name of inPath) {
    if (ID.test(name)) places.set(name, (id) => ({ path: fill(name, id), body: firstBody }));
  }
  for (const { name } of inQuery.filter((one) => ID.test(one.name))) {
    places.set(`?${name}`, (id) => ({ path: fill(`?${name}`, id), body: firstBody }));
  }
  for (const body of bodies) {
    for (const name of Object.keys(body).filter((field) => ID.test(field))) {
      const filled = withOwnIds(body);
      places.set(`body.${name}`, (id) => ({ path: fill("", ""), body: { ...filled, [name]: id } }));
    }
  }
  return places;
}

function withOwnIds(body: Record<string, unknown>): Record<string, unknown> {
  const filled = Object.entries(body).map(([name, value]) => {
    const own = ID.test(name) ? idsOf(strange, name)[0] : undefined;
    return [name, own ?? value];
  });
  return Object.fromEntries(filled);
}

const isOwned = (id: string): boolean => [...owned.values()].some((ids) => ids.has(id));

/** A response in a comparable form: without the requested id, new ids, and times. */
async function comparableResponse(
  method: string,
  { path, body }: Attempt,
  id: string,
): Promise<string> {
  const withBody = method !== "GET" && method !== "DELETE" && body !== undefined;
  const response = await fetch(`${forge.stack.apiUrl}${path}`, {
    method,
    headers: {
      "x-service-api-key": stranger.user.key,
      ...(withBody ? { "content-type": "application/json" } : {}),
    },
    ...(withBody ? { body: JSON.stringify(body) } : {}),
  });
  const text = (await response.text())
    .replaceAll(id, "<id>")
    .replaceAll(/\b(req|job|ds|ckpt|eval|dep|key|usr|wkr)_[0-9a-z]{26}\b/g, (one) =>
      isOwned(one) ? one : "<new>",
    )
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>");
  return `${response.status} ${response.headers.get("content-type")} ${text}`;
}

/**
 * The only field in which another tenant's id gets a different response than an unused id: two
 * tenants can't register workers with the same id.
 */
const EXCEPTION = "registerWorker body.worker_id";

test("no operation distinguishes another tenant's id from one that never existed", async () => {
  const revealed: string[] = [];
  const tried: string[] = [];
  for (const one of operations) {
    for (const [place, attempt] of placesOf(one)) {
      const name = `${one.operation.operationId} ${place}`;
      const ids = idsOf(owned, place.replace(/^(\?|body\.)/, ""));
      if (ids.length === 0) throw new Error(`${name}: the owner has no id to try`);
      const never = unusedId();
      const expected = await comparableResponse(one.method, attempt(never), never);
      for (const id of ids) {
        const others = await comparableResponse(one.method, attempt(id), id);
        tried.push(name);
        if (others !== expected && name !== EXCEPTION)
          revealed.push(`${name}:\n${others}\n${expected}`);
        if (name === EXCEPTION) expect(others).toMatch(/^409 .*worker_id_taken/);
      }
    }
  }
  expect(revealed).toEqual([]);
  expect(new Set(tried).size).toBeGreaterThan(20);
});

test("these calls changed none of the owner's objects", async () => {
  const { jobs } = await owner.user.get<{
    jobs: { job_id: string; retried_from: string | null }[];
  }>("/api/jobs?limit=200");
  expect(jobs.map((job) => job.job_id).sort()).toEqual([...(owned.get("job_id") ?? [])].sort());
  const { api_keys: keys } = await owner.user.get<{ api_keys: { revoked_at: string | null }[] }>(
    "/api/auth/api-keys",
  );
  expect(keys.filter((key) => key.revoked_at !== null)).toEqual([]);
});

test("no list shows another tenant's ids", () => {
  for (const [name, ids] of owned) {
    // Ignore ids that start with `unlisted`: both tenants use the same ones in their payloads.
    const seen = [...(strange.get(name) ?? [])].filter(
      (id) => ids.has(id) && !id.startsWith("unlisted"),
    );
    expect([name, seen]).toEqual([name, []]);
  }
});

test("a reference to another tenant's artifact gets the same warning and is not resolved", async () => {
  const [id = ""] = idsOf(owned, "artifact_id");
  const body = { dataset_id: id, model: "m", resources: { gpu: 8 } };
  const job = await stranger.user.post<{ warnings: unknown; payload: object }>("/train", body);
  expect(job.warnings).toEqual([
    { code: "unresolved_reference", param: "dataset_id", message: expect.stringContaining(id) },
  ]);
  expect(await owner.user.post("/train", body)).not.toHaveProperty("warnings");
});

describe("scopes", () => {
  const LADDER = ["open", "worker", "user", "admin"];

  test("every operation declares one", () => {
    for (const { operation } of operations) expect(LADDER).toContain(operation["x-forge-scope"]);
  });

  test.each(["worker", "user"])(
    "a %s key is refused by every operation that needs more",
    async (scope) => {
      const { workerKey, userKey } = forge.stack.keys;
      const key = scope === "worker" ? workerKey : userKey;
      const lacking = operations.filter(
        ({ operation }) => LADDER.indexOf(operation["x-forge-scope"]) > LADDER.indexOf(scope),
      );
      expect(lacking.length).toBeGreaterThan(1);
      const api = new ApiClient(forge.stack.apiUrl, key);
      for (const { method, path } of lacking) {
        const body = method === "GET" || method === "DELETE" ? undefined : {};
        const answer = await api.call(method, path.replaceAll(/[{}]/g, ""), body);
        expect([method, path, answer.status, answer.body]).toEqual([
          method,
          path,
          403,
          { error: expect.objectContaining({ code: "insufficient_scope" }) },
        ]);
      }
    },
  );
});
