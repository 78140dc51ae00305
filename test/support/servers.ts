import { randomBytes } from "node:crypto";
import pg from "pg";
import type { GivenServers } from "../../dev/stack/stack";
import { TEMPLATE } from "../../dev/test/servers";
import { hostOfThisWorker } from "./server-host";

export type Server = "postgres" | "temporal" | "server";

export interface Place {
  given: GivenServers;
  /** Settings for the forge-server. */
  env: Record<string, string>;
  remove(): Promise<void>;
}

/**
 * Creates a database and a task queue for one test file on the servers that `npm test` has started
 * (dev/test/servers.ts). Leaves out the servers in `own`: the file's stack starts these itself. If
 * the file runs without shared servers, its stack starts all servers.
 */
export async function createPlace(own: Server[]): Promise<Place> {
  const { TEST_POSTGRES_URL: postgres, TEST_TEMPORAL_ADDRESS: temporal } = process.env;
  const name = `test_${randomBytes(6).toString("hex")}`;
  const place: Place = { given: {}, env: {}, remove: async () => undefined };
  const host = own.includes("server") ? undefined : hostOfThisWorker();
  if (host) place.given.host = host;
  if (temporal && !own.includes("temporal")) {
    place.given.temporalAddress = temporal;
    place.env.FORGE_TASK_QUEUE = name;
  }
  if (postgres && !own.includes("postgres")) {
    await administer(postgres, `create database ${name} template ${TEMPLATE}`);
    const url = new URL(postgres);
    url.pathname = `/${name}`;
    place.given.databaseUrl = url.href;
    place.remove = () => administer(postgres, `drop database ${name} with (force)`);
  }
  return place;
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
