import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { parse } from "csv-parse/sync";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { BillingExporter } from "../../services/billing/billing-exporter";
import { addLine, lineState, untilExported, untilRefused } from "../support/billing-lines";
import { type Forge, startForge } from "../support/forge";
import { type Fault, StripeServer } from "../support/stripe-server";
import { createTenant } from "../support/tenants";

const KEY = "sk_test_not_a_real_key";
let forge: Forge;
let stripe: StripeServer;

beforeAll(async () => {
  stripe = await StripeServer.start(KEY);
  forge = await startForge(stripe.settings(0.1), { own: ["server"] });
  expect(await setCustomer("local", "cus_local")).toMatchObject({ body: { user_id: "local" } });
});

afterAll(async () => {
  await forge?.stop();
  await stripe?.stop();
});

const setCustomer = (userId: string, id: string | null) =>
  forge.admin.call<Record<string, unknown>>("PUT", `/api/admin/users/${userId}/payment-customer`, {
    payment_customer_id: id,
  });

const logs = (): string => {
  const folder = dirname(forge.stack.logFile("any"));
  return readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("");
};

test("a line is one event: its id, its customer, its time, and millionths of a dollar", async () => {
  await addLine(forge, "line:first", { costUsd: "12.345678" });
  await untilExported(forge, "line:first");
  expect(stripe.events).toEqual([
    {
      event_name: "forge_usage",
      identifier: "line:first",
      customer: "cus_local",
      value: "12345678",
      timestamp: expect.any(Number),
    },
  ]);
  const [headers] = stripe.headers;
  expect(headers).toMatchObject({ "content-type": "application/x-www-form-urlencoded" });
  expect(headers).not.toHaveProperty("x-stripe-client-telemetry");
  expect(String(headers?.["x-stripe-client-user-agent"])).not.toMatch(/platform|telemetry_id/);
});

test("a line without a cost is not exported", async () => {
  await addLine(forge, "free", { costUsd: "0" });
  await addLine(forge, "after-free");
  await untilExported(forge, "after-free");
  expect(stripe.taken("free")).toBe(0);
});

const faults: [string, Fault[]][] = [
  ["a rate limit", [429]],
  ["a failure of Stripe's", [500, 500]],
  ["a connection cut before", ["cut-before", "cut-before"]],
  ["a connection cut after the event was accepted", ["cut-after"]],
  ["one cut after it, and one cut at its repetition", ["cut-after", "cut-after"]],
  ["a gateway's page", ["gateway", "gateway"]],
  ["a gateway's JSON, which the library takes for success", ["gateway-json", "gateway-json"]],
];
test.each(faults)("after %s the line arrives once", async (what, queue) => {
  stripe.faults.push(...queue);
  await addLine(forge, `fault:${what}`);
  await untilExported(forge, `fault:${what}`);
  expect(stripe.faults).toEqual([]);
  expect(stripe.taken(`fault:${what}`)).toBe(1);
});

test("a refused line blocks no other line, and arrives when its customer is corrected", async () => {
  await createTenant(forge, "typo");
  await setCustomer("typo", "cus_typo");
  stripe.unknownCustomers.add("cus_typo");
  await addLine(forge, "refused", { userId: "typo" });
  for (let n = 0; n < 20; n++) await addLine(forge, `beside:${n}`);
  const refused = await untilRefused(forge, "refused");
  expect(refused.export_error).toBe("refused: 400 No such customer: 'cus_typo'");
  expect(refused.due_in_h).toBeGreaterThan(23);
  for (let n = 0; n < 20; n++) await untilExported(forge, `beside:${n}`);
  await setCustomer("typo", "cus_right");
  await untilExported(forge, "refused");
  expect(stripe.events.find(({ identifier }) => identifier === "refused")).toMatchObject({
    customer: "cus_right",
  });
});

test("lines of a user without a customer id wait for it", async () => {
  await createTenant(forge, "later");
  for (const n of [1, 2]) await addLine(forge, `waits:${n}`, { userId: "later" });
  expect((await untilRefused(forge, "waits:1")).export_error).toMatch(/^no_customer: /);
  await addLine(forge, "meanwhile");
  await untilExported(forge, "meanwhile");
  expect(stripe.taken("waits:1")).toBe(0);
  await setCustomer("later", "cus_later");
  for (const n of [1, 2]) await untilExported(forge, `waits:${n}`);
});

test("a line that Stripe would refuse or might count twice needs an operator", async () => {
  const before = stripe.headers.length;
  await addLine(forge, "old", { ageS: 36 * 86_400 });
  await addLine(forge, "in-doubt", { ageS: 2 * 86_400, askedS: 86_400 });
  const old = await untilRefused(forge, "old");
  expect(old.export_error).toMatch(/^too_old: /);
  const inDoubt = await untilRefused(forge, "in-doubt");
  expect(inDoubt.export_error).toMatch(/^unconfirmed: /);
  expect(inDoubt.in_doubt).toBe(true);
  // Forge checks the lines' ages again a day later, because a wrong clock may have made the lines
  // seem too old.
  for (const { due_in_h: hours } of [old, inDoubt]) expect(hours).toBeGreaterThan(23);
  expect(stripe.headers).toHaveLength(before);
});

test("a line that Stripe has already, although it was never sent, is marked for its operator", async () => {
  await addLine(forge, "restored", { costUsd: "5" });
  await untilExported(forge, "restored");
  expect(await lineState(forge, "restored")).toMatchObject({ export_error: null });
  // Simulate a restored database in which the job has run again and has cost less.
  await transaction(forge.ctx.pool, async (db) => {
    await execute(db, "set local session_replication_role = replica");
    await execute(
      db,
      `update billing_lines set cost_usd = 3, exported_at = null, export_asked_at = null, export_due_at = now()
       where line_id = 'restored'`,
    );
  });
  await untilExported(forge, "restored");
  const { export_error: warning } = await lineState(forge, "restored");
  expect(warning).toMatch(/^already_there: /);
});

test("lines that an earlier release gave up because of their age are checked again", async () => {
  await execute(
    forge.ctx.pool,
    `insert into billing_lines (line_id, user_id, month, cost_usd, export_due_at)
     values ('given-up', 'local', date_trunc('month', now() at time zone 'UTC'), 1, 'infinity')`,
  );
  await untilExported(forge, "given-up");
});

test("a line that may have arrived stays in doubt, whatever the later responses; other lines don't", async () => {
  const { key } = stripe;
  stripe.key = "sk_test_rotated";
  // Cut two connections, because Stripe's library repeats a failed request once.
  stripe.faults.push("cut-before", "cut-before");
  await addLine(forge, "cut");
  const failed = (lineId: string) => async () => {
    const { export_error: error, in_doubt } = await lineState(forge, lineId);
    return error?.startsWith("key_refused") ? { in_doubt } : undefined;
  };
  expect(await waitFor("the cut line to be refused", failed("cut"))).toEqual({ in_doubt: true });
  await addLine(forge, "clear");
  expect(await waitFor("the other, too", failed("clear"))).toEqual({ in_doubt: false });
  stripe.key = key;
  for (const lineId of ["cut", "clear"]) await untilExported(forge, lineId);
});

test("a wrong key marks no line as failed: all arrive once it is corrected", async () => {
  const { key } = stripe;
  const counted = (pattern: RegExp): number => logs().match(pattern)?.length ?? 0;
  const failing = /"loop":"billing-export","err":"Error: key_refused: 401/g;
  const began = /"loop":"billing-export".*"msg":"loop failed"/g;
  const ended = /"loop":"billing-export".*"msg":"loop recovered"/g;
  // The exporter logs only the first failure of an outage. So wait until the outage of the previous
  // test has ended.
  await waitFor("the last outage to end", () => counted(ended) === counted(began));
  // Count the logged failures before the lines are inserted, because Stripe may refuse the first
  // line before the last one is inserted.
  const before = counted(failing);
  stripe.key = "sk_test_rotated";
  for (let n = 0; n < 10; n++) await addLine(forge, `locked-out:${n}`);
  await waitFor("the failure to be logged", () => counted(failing) > before);
  const waiting = await lineState(forge, "locked-out:0");
  expect(waiting.due_in_h).toBeLessThan(1);
  stripe.key = key;
  for (let n = 0; n < 10; n++) await untilExported(forge, `locked-out:${n}`);
  expect(counted(failing)).toBe(before + 1);
});

test("a server killed between delivery and its mark bills nothing twice", async () => {
  let answer = (): void => undefined;
  stripe.answering = new Promise((resolve) => {
    answer = resolve;
  });
  await addLine(forge, "killed");
  await waitFor("the event to be taken", () => stripe.taken("killed") === 1);
  await forge.stack.server?.kill();
  answer();
  stripe.answering = undefined;
  expect(await lineState(forge, "killed")).toMatchObject({ exported_at: null });
  await forge.stack.startServer();
  // Make the line due, as if its lease had expired.
  await execute(
    forge.ctx.pool,
    "update billing_lines set export_due_at = now() where line_id = 'killed'",
  );
  await untilExported(forge, "killed");
  expect(stripe.repeated).toContain("killed");
  expect(stripe.taken("killed")).toBe(1);
});

test("two servers deliver each of many lines once, with faults among them", async () => {
  await forge.stack.startAnotherServer();
  const users = ["local", ...Array.from({ length: 5 }, (_, n) => `team-${n}`)];
  for (const userId of users.slice(1)) {
    await createTenant(forge, userId);
    await setCustomer(userId, `cus_${userId}`);
  }
  const kinds = faults.flatMap(([, queue]) => queue);
  stripe.faults.push(...kinds, ...kinds);
  const ids = Array.from({ length: 240 }, (_, n) => `many:${n}`);
  // Insert one line of each tenant at a time. Concurrent inserts for one tenant would wait for each
  // other to update its totals, and each would hold a connection.
  for (let from = 0; from < ids.length; from += users.length) {
    await Promise.all(users.map((userId, n) => addLine(forge, ids[from + n] ?? "", { userId })));
  }
  for (const id of ids) await untilExported(forge, id);
  expect(ids.filter((id) => stripe.taken(id) !== 1)).toEqual([]);
});

test("an admin sets a user's customer id, and the change is logged", async () => {
  const { user } = await createTenant(forge, "audited");
  const path = "/api/admin/users/audited/payment-customer";
  const body = { payment_customer_id: "cus_1" };
  expect((await user.call("PUT", path, body)).status).toBe(403);
  expect((await setCustomer("nobody", "cus_1")).body).toMatchObject({
    error: { code: "user_not_found" },
  });
  const bad = await forge.admin.call("PUT", path, { payment_customer_id: "cus 1" });
  expect(bad).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_request", param: "payment_customer_id" } },
  });
  for (const id of ["cus_1", "cus_1", null]) {
    expect((await setCustomer("audited", id)).body).toMatchObject({
      user_id: "audited",
      payment_customer_id: id,
    });
  }
  const { users } = await forge.admin.get<{ users: { user_id: string }[] }>("/api/admin/users");
  expect(users.find(({ user_id }) => user_id === "audited")).toMatchObject({
    payment_customer_id: null,
  });
  const entries = await all(
    forge.ctx.pool,
    `select action, subject, scope, before, after from audit_entries where user_id = 'audited'
     order by entry_id`,
  );
  const common = { action: "payment_customer_set", subject: "audited", scope: "admin" };
  expect(entries).toEqual([
    { ...common, before: null, after: "cus_1" },
    { ...common, before: "cus_1", after: null },
  ]);
});

test("the key is in no log, no row and no configuration output", async () => {
  const program = join(checkoutRoot(), "dist", "bin", "forge-server.js");
  const env = { ...process.env, FORGE_BILLING_EXPORT: "stripe", FORGE_STRIPE_API_KEY: KEY };
  const listed = execFileSync(process.execPath, [program, "config"], { env, encoding: "utf8" });
  expect(listed).toContain("FORGE_STRIPE_API_KEY");
  const rows = await all<{ row: string }>(
    forge.ctx.pool,
    "select l::text as row from billing_lines l",
  );
  for (const shown of [listed, logs(), ...rows.map(({ row }) => row)]) {
    expect(shown).not.toContain(KEY);
  }
});

test("files: one per line in the store; writing one again creates no second one", async () => {
  await Promise.all([forge.stack.server, ...forge.stack.otherServers].map((one) => one?.stop()));
  const { ctx } = forge;
  await addJobLine("job_of_file", "=line,1");
  const written: string[] = [];
  for (const name of ["csv", "json"] as const) {
    const config = { ...ctx.config, billingExport: { intervalS: 0.1, to: { name } } };
    const part = new BillingExporter({ ...ctx, config });
    await part.start();
    await untilExported(forge, "=line,1");
    // Mark the line as not exported, as if the exporter had been killed right after it wrote the
    // file.
    const again = "update billing_lines set exported_at = null, export_due_at = now()";
    await execute(ctx.pool, `${again} where line_id = '=line,1'`);
    await untilExported(forge, "=line,1");
    await part.stop();
    await execute(ctx.pool, `${again} where line_id = '=line,1'`);
    const found = (await ctx.store.list("billing/exports/")).filter(({ path }) =>
      path.endsWith(`/%3Dline%2C1.${name}`),
    );
    expect(found).toHaveLength(1);
    written.push(await text(ctx.store.read(`billing/exports/${found[0]?.path}`)));
  }
  const [csv = "", json = ""] = written;
  const [row] = parse(csv, { columns: true }) as Record<string, string>[];
  expect(row).toMatchObject({ line_id: "'=line,1", job_type: "audit", cost_usd: "0.100000" });
  expect(JSON.parse(json)).toMatchObject({
    line_id: "=line,1",
    user_id: "local",
    customer_id: "cus_local",
    month: "2026-11",
    job_id: "job_of_file",
    job_type: "audit",
    cost_usd: "0.100000",
    gpu_hours: 0.25,
    gb_months: null,
  });
});

async function addJobLine(jobId: string, lineId: string): Promise<void> {
  const { pool } = forge.ctx;
  await execute(
    pool,
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                       timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                       request_id, status, error_code, completed_at)
     values ($1, 'local', 'k', 'audit', '{}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0, '{}', 'r', 'failed',
             'job_error', now())`,
    [jobId],
  );
  await execute(
    pool,
    `insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours)
     values ($1, 'local', '2026-11-01', $2, 0.1, 0.25)`,
    [lineId, jobId],
  );
}
