import { RAW_DATASET } from "../../core/artifacts/artifact-form";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { FaultyProxy } from "../support/faulty-proxy";
import { type Forge, startForge } from "../support/forge";

let forge: Forge;
let proxy: FaultyProxy;
/** The URL of a server that reaches Postgres through the proxy. */
let url: string;

beforeAll(async () => {
  forge = await startForge();
  proxy = await FaultyProxy.start(() => forge.stack.databaseUrl);
  const through = new URL(forge.stack.databaseUrl);
  // `host` is the folder of Postgres's Unix socket. Without it, the URL leads to the proxy's TCP
  // port.
  through.searchParams.delete("host");
  through.port = new URL(proxy.url).port;
  url = await forge.stack.startAnotherServer("api", { FORGE_DATABASE_URL: through.href });
}, 60_000);

afterAll(async () => {
  await forge?.stop();
  await proxy?.stop();
});

/**
 * From now on, a transaction that makes the given change takes three seconds longer to commit.
 * @returns a function that removes this delay.
 */
async function slowCommits(change: string): Promise<() => Promise<void>> {
  const { pool } = forge.ctx;
  await execute(
    pool,
    `create function commit_slowly() returns trigger language plpgsql as
     $$ begin perform pg_sleep(3); return null; end $$`,
  );
  await execute(
    pool,
    `create constraint trigger slow_commit ${change} deferrable initially deferred
     for each row execute function commit_slowly()`,
  );
  return async () => {
    await execute(pool, "drop function commit_slowly cascade");
  };
}

test("a dataset keeps its files if the answer of its commit is lost", async () => {
  const upload = () =>
    fetch(`${url}/api/datasets`, {
      method: "POST",
      headers: {
        "x-service-api-key": forge.user.key,
        "content-type": "application/x-ndjson",
        "idempotency-key": "once",
      },
      body: '{"q": "why?"}\n',
    });
  const end = await slowCommits("after update of registered_at on artifacts");
  const lost = upload();
  const isCommitting = `select from pg_stat_activity
    where datname = current_database() and query = 'commit' and wait_event = 'PgSleep'`;
  await waitFor("the commit", async () => (await all(forge.ctx.pool, isCommitting)).length > 0);
  proxy.cutAll();
  expect((await lost).status).toBe(503);
  const registered = "select from artifacts where registered_at is not null";
  await waitFor("it to be committed", async () => {
    return (await all(forge.ctx.pool, registered)).length > 0;
  });
  await end();
  const again = await upload();
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  const { dataset_id: id } = (await again.json()) as { dataset_id: string };
  // The second upload returned the dataset of the first upload. So the server removes the row and
  // the files that the second upload created.
  const rows = "select from artifacts where registered_at is null";
  await waitFor("its own row to go", async () => (await all(forge.ctx.pool, rows)).length === 0);
  const files = (await forge.ctx.store.list(`${RAW_DATASET.directory}/`)).map(({ path }) => path);
  expect(files.sort()).toEqual([`${id}/manifest.json`, `${id}/raw.jsonl`]);
}, 60_000);

test("an upload whose row the database has lost leaves no files", async () => {
  const prefix = `${RAW_DATASET.directory}/`;
  const before = await forge.ctx.store.list(prefix);
  const rows = new ReadableStream<Uint8Array>({
    async start(body) {
      body.enqueue(Buffer.from('{"q": "why?"}\n'));
      const reserved = "select from artifacts where registered_at is null";
      await waitFor("the row", async () => (await all(forge.ctx.pool, reserved)).length > 0);
      await execute(forge.ctx.pool, "delete from artifacts where registered_at is null");
      body.enqueue(Buffer.from('{"q": "why not?"}\n'));
      body.close();
    },
  });
  const { status } = await fetch(`${url}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "application/x-ndjson" },
    body: rows,
    duplex: "half",
  } as RequestInit);
  expect(status).toBe(500);
  await waitFor("its files to go", async () => {
    return (await forge.ctx.store.list(prefix)).length === before.length;
  });
  expect(await forge.ctx.store.list(prefix)).toEqual(before);
}, 60_000);
