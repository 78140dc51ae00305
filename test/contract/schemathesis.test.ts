import { type Forge, startForge } from "../support/forge";
import { finishEverything, runSchemathesis, SCHEMATHESIS_ENV } from "../support/schemathesis";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(SCHEMATHESIS_ENV);
});

afterAll(async () => {
  await forge?.stop();
});

/** The short form; test/slow has the long one. */
test("schemathesis finds nothing in a thousand calls", async () => {
  const workers = await finishEverything(forge);
  const run = await runSchemathesis(forge, forge.stack.keys.userKey, ["--max-examples", "2"]);
  await workers.stop();
  if (run.code !== 0) throw new Error(run.output);
  expect(run.calls).toBeGreaterThan(1000);
}, 180_000);
