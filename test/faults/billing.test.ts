import { billDuringKills, SHORT_TIMEOUTS } from "../support/bills-during-kills";
import { type Forge, startForge } from "../support/forge";
import { recomputeBills } from "../support/forge-server";
import { provePrices, proveSums } from "../support/prove-bills";
import { spreadOverMonths } from "../support/spread-over-months";

const JOBS = process.env.TEST_SLOW ? 5_000 : 40;
const KILLS = process.env.TEST_SLOW ? 24 : 4;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(SHORT_TIMEOUTS, { split: true, own: ["postgres", "temporal"] });
  await spreadOverMonths(forge);
});

afterAll(async () => {
  await forge?.stop();
});

test(`${JOBS} random jobs while processes are killed: sums, periods, prices and files agree to the last digit`, async () => {
  const { tenants, killed, ends } = await billDuringKills(forge, JOBS, KILLS);
  expect(new Set(killed).size).toBe(4);
  await forge.proveInvariants();
  let seen = 0;
  for (const [id, { user }] of Object.entries(tenants)) {
    const { records, months, usd } = await proveSums(forge, id, user);
    await provePrices(forge, records);
    seen += records.length;
    const cards = [...new Set(records.map(({ rate_card: card }) => card))].sort();
    process.stderr.write(
      `${id}: ${records.length} records, ${months} months, ${usd} USD, ${cards}\n`,
    );
    if (id === "cy") expect(cards).toEqual(["default", "metered"]);
    expect(months).toBeGreaterThan(1);
  }
  process.stderr.write(`${killed.length} kills; ${JSON.stringify(ends)}\n`);
  expect(ends.completed).toBe(seen);
  expect(ends.completed).toBeGreaterThan(JOBS * 0.7);
  const { code, stdout } = await recomputeBills(forge);
  expect(stdout).toBe(`${seen} records, 0 differences\n`);
  expect(code).toBe(0);
}, 1_800_000);
