import { waitFor } from "../../dev/stack/wait";
import { execute, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { readMetrics, sampleOf } from "../support/metrics";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_WORKFLOW_START_S: "1" });
});

afterAll(async () => {
  await forge?.stop();
});

const JOBS = 200;

const countStarts = async (where: string): Promise<number> => {
  const text = `select count(*)::int as n from outbox where topic = 'start' and ${where}`;
  return (await maybeOne<{ n: number }>(forge.ctx.pool, text))?.n ?? 0;
};

test("the workflows of a burst of jobs start one after the other, and the planned starts are not counted as late", async () => {
  await Promise.all(Array.from({ length: JOBS }, () => forge.user.submit("audit", AUDIT)));
  // The workflows of the first forty jobs start one second after the submission. Those of the other
  // 160 jobs start at a rate of five per second, the last one after about 30 s.
  expect(await countStarts("due_at > now() + interval '8 s'")).toBeGreaterThan(10);
  const change =
    "update outbox set due_at = now() + interval '5 min' where due_at > now() + interval '2 s'";
  const planned = await execute(forge.ctx.pool, change);
  expect(planned).toBeGreaterThan(10);
  await waitFor("the others to have started", async () => (await countStarts("true")) === planned);
  const metrics = await readMetrics(forge.stack.apiUrl, forge.stack.keys.adminKey);
  expect(sampleOf(metrics, "forge_outbox_rows", {})).toBe(0);
}, 90_000);
