import { Client, Connection } from "@temporalio/client";
import type pg from "pg";
import { countJobCost, type JobCost } from "../../dev/bench/outside/job-cost";
import { CountingPostgresProxy } from "../../dev/bench/outside/postgres-proxy";
import { CountingTemporalProxy } from "../../dev/bench/outside/temporal-proxy";
import { startServersOnly } from "../support/server-process";
import { createTestPool } from "../support/test-pool";
import type { TestStack } from "../support/test-stack";

/**
 * Bounds for counts, not for times. The comments show what a job needs on a fast machine. On a slow
 * machine that is busy with other work, even the cheapest job may last so long that a cached key is
 * looked up again and that the courier's sweep reads the outbox. The bounds allow for these.
 */
const AT_MOST = {
  transactions: 11, // 8
  statements: 16, // 13
  temporalCalls: 3, // 2
  historyEvents: 7, // 6
};

const JOBS = 9;
const ROUNDS = 4;

let servers: TestStack;
let postgres: CountingPostgresProxy | undefined;
let temporal: CountingTemporalProxy | undefined;
let pool: pg.Pool | undefined;
let connection: Connection | undefined;

beforeAll(async () => {
  servers = await startServersOnly();
});

afterAll(async () => {
  await pool?.end();
  await connection?.close();
  await servers?.end();
  postgres?.stop();
  temporal?.stop();
});

test("a short job stays within its transactions, statements, Temporal calls and history events", async () => {
  const { stack } = servers;
  postgres = await CountingPostgresProxy.start(stack.databaseUrl);
  temporal = await CountingTemporalProxy.start(stack.temporalAddress);
  await stack.startServer({
    FORGE_DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS: temporal.address,
    FORGE_HEARTBEAT_TIMEOUT_S: "600",
  });
  pool = createTestPool(stack.databaseUrl, 2);
  connection = await Connection.connect({ address: stack.temporalAddress });
  const { userKey, workerKey } = stack.keys;
  const forge = {
    url: stack.apiUrl,
    userKey,
    workerKey,
    postgres,
    temporal,
    pool,
    client: new Client({ connection }),
  };
  const isWithin = (cost: JobCost): boolean =>
    Object.entries(AT_MOST).every(([name, most]) => {
      const count = cost[name as keyof typeof AT_MOST];
      return count > 0 && count <= most;
    });
  // Load on the machine can only raise the counts, so one round within the bounds is enough.
  let cost = await countJobCost(forge, JOBS);
  for (let round = 1; round < ROUNDS && !isWithin(cost); round++) {
    cost = await countJobCost(forge, JOBS);
  }
  // If a count is too high, the failure shows all calls of a job.
  expect(isWithin(cost) ? undefined : cost).toBeUndefined();
});
