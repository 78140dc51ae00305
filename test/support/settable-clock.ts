import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import type { Forge } from "./forge";

/** Like Postgres's own `now()`, returns the same time for the whole transaction. */
const NOW = `
  create function test_clock.now() returns timestamptz language sql stable as $$
    select pg_catalog.now() + make_interval(secs => coalesce(
      nullif(current_setting('test_clock.by_s', true), ''),
      (select set_config('test_clock.by_s', by_s::text, true) from test_clock.step))::float8) $$`;

const CLOCK = (name: string): string => `
  create function test_clock.${name}() returns timestamptz language sql ${name === "clock_timestamp" ? "volatile" : "stable"} as
    $$ select pg_catalog.${name}() + make_interval(secs => by_s) from test_clock.step $$`;

/**
 * Makes the columns' defaults call the test's `now()`. Otherwise a default would still call
 * Postgres's own `now()`.
 */
const DEFAULTS = `do $do$ declare c record; begin
  for c in select table_name, column_name from information_schema.columns
           where table_schema = 'public' and column_default = 'now()' loop
    execute format('alter table %I alter %I set default test_clock.now()', c.table_name, c.column_name);
  end loop;
end $do$`;

/**
 * Replaces `now()`, `clock_timestamp()` and `statement_timestamp()` in the test's database, because
 * a test can't set the machine's clock. The search path puts the replacements before Postgres's own
 * functions. Restarts the test file's server.
 *
 * @returns a function that sets the clock to the machine's time plus a number of seconds.
 */
export async function useSettableClock(forge: Forge): Promise<(byS: number) => Promise<void>> {
  const { pool } = forge.ctx;
  for (const statement of [
    "create schema test_clock",
    "create table test_clock.step (by_s float8 not null)",
    "insert into test_clock.step values (0)",
    NOW,
    CLOCK("clock_timestamp"),
    CLOCK("statement_timestamp"),
    DEFAULTS,
  ]) {
    await execute(pool, statement);
  }
  const database = await maybeOne<{ name: string }>(pool, "select current_database() as name");
  await execute(
    pool,
    `alter database "${database?.name}" set search_path = test_clock, pg_catalog, public`,
  );
  // Close all connections, because the old ones still use Postgres's clock. In a process with old
  // and new connections, the clock would seem to jump from one statement to the next. `order by`
  // makes this statement close its own connection last.
  await execute(
    pool,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
     order by pid = pg_backend_pid()`,
  ).catch(() => undefined);
  // During the restart, the other processes (for example this one) notice that their connections
  // were closed.
  await forge.stack.server?.kill();
  await forge.stack.startServer();
  return async (byS) => {
    await execute(pool, "update test_clock.step set by_s = $1", [byS]);
  };
}

/**
 * Waits until each server has checked the clock. Call this function between two changes of the
 * clock in opposite directions. Otherwise, a server may check the clock only after both changes,
 * and the second change may then be recorded twice (see the limits of ClockWatch).
 */
export async function untilAllCheckClock({ ctx: { pool }, servers }: Forge): Promise<void> {
  await execute(pool, "delete from clock_looks");
  await waitFor("all servers to check the clock", async () => {
    return (await all(pool, "select from clock_looks")).length >= servers().length;
  });
}
