import { execute } from "../../platform/postgres/pool";
import { JobReader } from "../../services/jobs/job-reader";
import { type Database, openDatabase } from "../support/database";
import { NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";

const TENANTS = ["ann", "bob"];
/** Each tenant's jobs are "ann-0", "ann-1" and so on. */
const JOBS = 40;
const idsOf = (tenant: string): string[] =>
  Array.from({ length: JOBS }, (_, n) => `${tenant}-${n}`);

type Scope = "user" | "admin";

let forge: Database;
let reader: JobReader;

beforeAll(async () => {
  forge = await openDatabase();
  const { pool } = forge.ctx;
  reader = new JobReader(forge.ctx);
  for (const tenant of TENANTS) {
    await execute(pool, "insert into users (user_id, name) values ($1, $1)", [tenant]);
    const job = { userId: tenant, priority: 0, queuedAt: 0, ...NO_NEEDS };
    await queueJobs(
      pool,
      idsOf(tenant).map((jobId) => ({ jobId, ...job })),
    );
  }
});

afterAll(async () => {
  await forge?.stop();
});

test("concurrent reads share statements, and each gets its own job", async () => {
  const statements = jest.spyOn(forge.ctx.pool, "query");
  const ids = idsOf("ann");
  const found = await Promise.all(
    ids.map((id) => reader.find(id, { userId: "ann", scope: "user" })),
  );
  expect(found.map((job) => job?.job_id)).toEqual(ids);
  // One statement reads the first job at once. The other 39 are read together, up to 16 jobs per
  // statement.
  expect(statements).toHaveBeenCalledTimes(4);
  statements.mockRestore();
});

test("a tenant finds only its own jobs, an admin those of all tenants", async () => {
  const ids = ["ann-0", "bob-0", "ann-1", "no such job", "bob-1", "ann-0"];
  const findAll = async (userId: string, scope: Scope) => {
    const found = await Promise.all(ids.map((id) => reader.find(id, { userId, scope })));
    return found.map((job) => job?.job_id);
  };
  const all = [findAll("ann", "user"), findAll("bob", "user"), findAll("ann", "admin")];
  expect(await Promise.all(all)).toEqual([
    ["ann-0", undefined, "ann-1", undefined, undefined, "ann-0"],
    [undefined, "bob-0", undefined, undefined, "bob-1", undefined],
    ["ann-0", "bob-0", "ann-1", undefined, "bob-1", "ann-0"],
  ]);
});

test("large jobs are read one by one", async () => {
  const { pool } = forge.ctx;
  await execute(
    pool,
    `update jobs set payload = jsonb_build_object('text', repeat('x', 300000))
     where job_id = any('{bob-3,bob-5}')`,
  );
  const ids = ["bob-1", "bob-2", "bob-3", "bob-4", "no such job", "bob-5", "bob-6"];
  const statements = jest.spyOn(pool, "query");
  const found = await Promise.all(
    ids.map((id) => reader.find(id, { userId: "bob", scope: "user" })),
  );
  expect(found.map((job) => job?.job_id)).toEqual(
    ids.map((id) => (id.startsWith("bob") ? id : undefined)),
  );
  // Six statements. The first one reads bob-1, which does not wait. The second one is for the other
  // six ids, but stops after the large bob-3. So each of the remaining four ids needs its own
  // statement.
  expect(statements).toHaveBeenCalledTimes(6);
  statements.mockRestore();
});

test("a read that begins after a change shows the change", async () => {
  const { pool } = forge.ctx;
  const ann = { userId: "ann", scope: "user" as const };
  for (let round = 1; round <= 20; round++) {
    // Start a read before the change. The read after the change must not share the statement of the
    // earlier read. It must wait for the next statement.
    const earlier = reader.find("ann-1", ann);
    await execute(pool, "update jobs set priority = $1 where job_id = 'ann-2'", [round]);
    const busy = idsOf("ann").map((id) => reader.find(id, ann));
    expect((await reader.find("ann-2", ann))?.priority).toBe(round);
    await Promise.all([earlier, ...busy]);
  }
});
