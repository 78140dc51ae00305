import { type Forge, startForge } from "../support/forge";
import { finishEverything, runSchemathesis, SCHEMATHESIS_ENV } from "../support/schemathesis";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(SCHEMATHESIS_ENV);
});

afterAll(async () => {
  await forge?.stop();
});

/** What the document itself shows; test/slow has the calls that are made up. */
test("schemathesis finds nothing in the examples of the document", async () => {
  const workers = await finishEverything(forge);
  const run = await runSchemathesis(forge, forge.stack.keys.userKey, ["--phases", "examples"]);
  await workers.stop();
  if (run.code !== 0) throw new Error(run.output);
  expect(run.calls).toBeGreaterThan(20);
}, 180_000);
