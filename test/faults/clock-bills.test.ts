/**
 * The database's clock is set forward for a moment and then corrected. Forge must still export each
 * bill line, and bill storage for its real duration.
 */

import { waitFor } from "../../dev/stack/wait";
import { maybeOne } from "../../platform/postgres/pool";
import { closeMonths } from "../../services/billing/close-months";
import { readSummary } from "../support/billing";
import { addLine, lineState, untilExported } from "../support/billing-lines";
import { type Forge, startForge } from "../support/forge";
import { untilServerWaits, withLock } from "../support/locks";
import { useSettableClock } from "../support/settable-clock";
import { StripeServer } from "../support/stripe-server";
import { createTenant } from "../support/tenants";

const KEY = "sk_test_not_a_real_key";
const DAY_S = 86_400;
/**
 * How far the clock is set ahead, in seconds. By the new clock, the current month is over, and a
 * billing line that was written just before is older than 35 days, the maximum that Stripe accepts.
 */
const FAR_S = 40 * DAY_S;
let forge: Forge;
let stripe: StripeServer;
let setClock: (byS: number) => Promise<void>;

beforeAll(async () => {
  stripe = await StripeServer.start(KEY);
  forge = await startForge(stripe.settings(1), { own: ["server"] });
  await forge.admin.call("PUT", "/api/admin/users/local/payment-customer", {
    payment_customer_id: "cus_local",
  });
  setClock = await useSettableClock(forge);
}, 120_000);

afterAll(async () => {
  await forge?.stop();
  await stripe?.stop();
});

/** Sets the clock `byS` seconds ahead of the right time, and waits until the step is recorded. */
async function setAndRecord(byS: number): Promise<void> {
  await setClock(byS);
  await waitFor("the step to be recorded", async () => {
    const row = await maybeOne<{ s: number }>(
      forge.ctx.pool,
      "select coalesce(sum(by_s), 0)::float8 as s from clock_steps",
    );
    return Math.abs((row?.s ?? 0) - byS) < 5;
  });
}

const triesOf = async (lineId: string): Promise<number> =>
  (
    await maybeOne<{ export_tries: number }>(
      forge.ctx.pool,
      "select export_tries from billing_lines where line_id = $1",
      [lineId],
    )
  )?.export_tries ?? 0;

test("a line that waits for Stripe while the clock is ahead is still exported", async () => {
  for (let n = 0; n < 200; n++) stripe.faults.push(500);
  await addLine(forge, "waits");
  await waitFor("it to have been sent", async () => stripe.headers.length > 0);
  await setAndRecord(FAR_S);
  const before = await triesOf("waits");
  await waitFor("a try meanwhile", async () => (await triesOf("waits")) > before);
  expect((await lineState(forge, "waits")).export_error ?? "").not.toMatch(/^too_old/);
  await setAndRecord(0);
  stripe.faults.length = 0;
  await untilExported(forge, "waits");
}, 180_000);

describe("a line in doubt is not given up", () => {
  const IN_DOUBT = { askedS: 3_600, dueInS: 3_600 };

  test("by a step that is not recorded yet", async () => {
    await addLine(forge, "later", IN_DOUBT);
    // When the clock is this far ahead, the line's `export_due_at` has passed.
    await setClock(2 * DAY_S);
    await untilExported(forge, "later");
    await setAndRecord(0);
  }, 120_000);

  test("by a step during its claim", async () => {
    await addLine(forge, "meanwhile", IN_DOUBT);
    // The statement that claims the line also reads the table `jobs`. So the transaction begins
    // and then waits for this lock. The clock is set while the transaction waits.
    await withLock(forge, "lock table jobs in access exclusive mode", [], async () => {
      await untilServerWaits(forge, "as customer_id,");
      await setClock(2 * DAY_S);
    });
    await untilExported(forge, "meanwhile");
    await setAndRecord(0);
  }, 120_000);
});

test("storage of a month that a clock set forward has closed is billed as it was", async () => {
  const tenant = await createTenant(forge, "research");
  await forge.admin.call("POST", "/api/admin/rate-cards", {
    name: "research",
    prices: {
      basis: "metered",
      gpuHour: { default: "2.50" },
      inputPer1mTokens: "10.00",
      outputPer1mTokens: "30.00",
      storagePerGbMonth: "1000",
      deployPerMonth: "3",
    },
  });
  await forge.admin.call("PUT", "/api/admin/users/research/rate-card", { rate_card: "research" });
  const answer = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": tenant.user.key, "content-type": "application/x-ndjson" },
    body: Buffer.alloc(2_000_000, "{}\n"),
  });
  const { artifact_id: id } = (await answer.json()) as { artifact_id: string };
  await setAndRecord(FAR_S);
  while ((await closeMonths(forge.ctx)) > 0);
  await setAndRecord(0);
  // The dataset is deleted at once, so it was stored for seconds only.
  expect((await tenant.user.call("DELETE", `/api/artifacts/${id}`)).status).toBeLessThan(300);
  const { storage } = await readSummary(tenant.user);
  const { gb_months: stored } = await tenant.user.get<{ gb_months: number }>("/api/storage");
  expect(storage.gb_months).toBeCloseTo(stored, 6);
  expect(storage.gb_months).toBeLessThan(0.0001);
}, 180_000);
