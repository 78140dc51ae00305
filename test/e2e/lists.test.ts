import fc from "fast-check";
import type { ApiClient, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { countWaiting, withLock } from "../support/locks";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let tenant: Tenant;

beforeAll(async () => {
  forge = await startForge({
    FORGE_RATE_LIMIT_PER_MINUTE: "1000000",
    FORGE_RATE_LIMIT_BURST: "100000",
  });
  tenant = await createTenant(forge, "lister");
});

afterAll(async () => {
  await forge?.stop();
});

interface Page {
  jobs: (Job & { created_at: string; tags: string[]; job_type: string; user_id: string })[];
  has_more: boolean;
  next_cursor: string | null;
}

const page = (query: string, api: ApiClient = tenant.user): Promise<Page> =>
  api.get<Page>(`/api/jobs?${query}`);

async function walk(
  query: string,
  between: () => Promise<unknown> = async () => undefined,
  api = tenant.user,
): Promise<string[]> {
  const ids: string[] = [];
  let after = "";
  for (;;) {
    const { jobs, has_more, next_cursor } = await page(`${query}${after}`, api);
    ids.push(...jobs.map((job) => job.job_id));
    expect(has_more).toBe(next_cursor !== null);
    if (!next_cursor) return ids;
    after = `&after=${next_cursor}`;
    await between();
  }
}

test("pages are complete while jobs are submitted, whatever their size", async () => {
  const submit = async (): Promise<string> => (await tenant.user.submit("audit", AUDIT)).job_id;
  const known: string[] = [];
  for (let n = 0; n < 25; n++) known.push(await submit());
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fc.nat(3), async (limit, more) => {
      const expected = [...known].reverse();
      let pages = 0;
      const seen = await walk(`limit=${limit}`, async () => {
        // Submit jobs only between the first ten pages. Otherwise, each run would read many more
        // pages than the run before.
        if (++pages > 10) return;
        for (let n = 0; n < more; n++) known.push(await submit());
      });
      expect(seen).toEqual(expected);
    }),
    { numRuns: 8 },
  );
});

test("jobs with the same time are neither lost nor repeated between pages", async () => {
  await all(
    forge.ctx.pool,
    "update jobs set created_at = date_trunc('day', now()) where user_id = 'lister'",
  );
  const rows = await all<{ job_id: string }>(
    forge.ctx.pool,
    "select job_id from jobs where user_id = 'lister' order by job_id desc",
  );
  expect(await walk("limit=3")).toEqual(rows.map((row) => row.job_id));
});

test("a page of large jobs ends early, and the next one continues", async () => {
  const heavy = await createTenant(forge, "heavy");
  const params = { text: "x".repeat(900_000) };
  const ids: string[] = [];
  for (let n = 0; n < 12; n++) {
    ids.unshift((await heavy.user.submit("audit", { ...AUDIT, params })).job_id);
  }
  const first = await page("limit=200", heavy.user);
  expect(first.jobs).toHaveLength(5);
  expect(first.has_more).toBe(true);
  expect(await walk("limit=200", undefined, heavy.user)).toEqual(ids);
});

describe("filters", () => {
  let fresh: Tenant;

  beforeAll(async () => {
    fresh = await createTenant(forge, "filterer");
    await fresh.user.submit("audit", { ...AUDIT, tags: ["a", "b"] });
    await fresh.user.submit("evaluate", { checkpoint_id: "c", tags: ["a"] });
    await fresh.user.submit("deploy", { checkpoint_id: "c" });
  });

  const types = async (query: string): Promise<string[]> =>
    (await page(query, fresh.user)).jobs.map((job) => job.job_type);

  test.each([
    ["", ["deploy", "evaluate", "audit"]],
    ["status=pending", ["deploy", "evaluate", "audit"]],
    ["status=completed&status=failed", []],
    ["job_type=audit", ["audit"]],
    ["job_type=audit&job_type=deploy", ["deploy", "audit"]],
    ["tag=a", ["evaluate", "audit"]],
    ["tag=a&tag=b", ["audit"]],
    ["tag=%27", []],
    ["worker_id=none", []],
    ["pipeline_id=none", []],
    ["created_after=2100-01-01T00:00:00Z", []],
    ["created_before=2100-01-01T00:00:00%2B01:00", ["deploy", "evaluate", "audit"]],
    ["status=pending&tag=a&job_type=evaluate&limit=1", ["evaluate"]],
  ])("%s", async (query, expected) => {
    expect(await types(query)).toEqual(expected);
  });

  test("an admin sees all tenants', or one's", async () => {
    const all = await page("limit=200", forge.admin);
    const users = new Set(all.jobs.map((job) => job.user_id));
    expect(users.has("filterer") && users.size > 1).toBe(true);
    expect((await page("user_id=filterer", forge.admin)).jobs).toHaveLength(3);
  });
});

test.each(["/api/artifacts", "/api/billing/records", "/api/workers", "/api/auth/api-keys"])(
  "%s has pages too",
  async (path) => {
    const answer = await tenant.user.get(`${path}?limit=1`);
    expect(answer).toMatchObject({ has_more: expect.any(Boolean) });
  },
);

test("a job's ETag changes only with the job", async () => {
  const reader = await createTenant(forge, "reader");
  const { job_id } = await reader.user.submit("audit", AUDIT);
  const read = (etag?: string): Promise<Response> =>
    fetch(`${forge.stack.apiUrl}/api/jobs/${job_id}`, {
      headers: {
        "x-service-api-key": reader.user.key,
        ...(etag === undefined ? {} : { "if-none-match": etag }),
      },
    });
  const etag = (await read()).headers.get("etag") ?? "";
  expect(etag).toMatch(/^".+"$/);
  for (const given of [etag, `"x", W/${etag}`, "*"]) {
    const unchanged = await read(given);
    expect([unchanged.status, await unchanged.text()]).toEqual([304, ""]);
  }
  const worker = reader.worker("etag-worker");
  await worker.register();
  await worker.take();
  const changed = await read(etag);
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).not.toBe(etag);
});

describe("many equal requests at the same moment, which share their reads", () => {
  test("each has every job that was submitted before it", async () => {
    let isOver = false;
    const readAllTheTime = async (): Promise<void> => {
      while (!isOver) await page("limit=1");
    };
    const readers = Array.from({ length: 30 }, readAllTheTime);
    try {
      for (let n = 0; n < 30; n++) {
        const { job_id } = await tenant.user.submit("audit", AUDIT);
        const { jobs } = await page("limit=1");
        expect(jobs.map((job) => job.job_id)).toEqual([job_id]);
      }
    } finally {
      isOver = true;
      await Promise.all(readers);
    }
  });

  test("each has the jobs that its own key may see, by its own filter", async () => {
    const other = await createTenant(forge, "another-lister");
    await other.user.submit("audit", AUDIT);
    await tenant.user.submit("audit", AUDIT);
    const ownersOf = async (query: string, api: ApiClient): Promise<string[]> => {
      const { jobs } = await page(query, api);
      return [...new Set(jobs.map((job) => job.user_id))].sort();
    };
    const [own, others] = [["lister"], ["another-lister"]];
    const requests = Array.from({ length: 20 }).flatMap(() => [
      { query: "limit=20", api: tenant.user, expected: own },
      { query: "limit=20", api: other.user, expected: others },
      { query: "limit=20", api: forge.admin, expected: ["another-lister", "lister"] },
      { query: "limit=20&user_id=another-lister", api: forge.admin, expected: others },
      { query: "limit=20&job_type=train", api: tenant.user, expected: [] },
    ]);
    const lock = "lock table archived_jobs in access exclusive mode";
    const { reading } = await withLock(forge, lock, [], async () => {
      const reading = Promise.all(requests.map(({ query, api }) => ownersOf(query, api)));
      const count = (): Promise<number> => countWaiting(forge, "forge", "shown_bytes");
      await waitFor("five statements", async () => (await count()) >= 5);
      for (const { api } of requests) await api.get("/api/auth/ping");
      expect(await count()).toBe(5);
      return { reading };
    });
    expect(await reading).toEqual(requests.map(({ expected }) => expected));
  });
});
