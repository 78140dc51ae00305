import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { type Forge, startForge } from "../support/forge";
import { finishEverything, runSchemathesis, SCHEMATHESIS_ENV } from "../support/schemathesis";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(SCHEMATHESIS_ENV);
});

afterAll(async () => {
  await forge?.stop();
});

/** The number of request examples in docs/openapi.json. */
function countExamples(): number {
  const text = readFileSync(join(checkoutRoot(), "docs", "openapi.json"), "utf8");
  const { paths } = JSON.parse(text) as OpenApiDocument;
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const bodies = operations.flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}));
  return bodies.reduce((sum, { examples }) => sum + Object.keys(examples ?? {}).length, 0);
}

/** Sends the OpenAPI document's examples. The test in test/slow also sends generated requests. */
test("schemathesis finds no problem in the document's examples", async () => {
  const workers = await finishEverything(forge);
  const run = await runSchemathesis(forge, forge.stack.keys.userKey, ["--phases", "examples"]);
  await workers.stop();
  if (run.code !== 0) throw new Error(run.output);
  expect(run.calls).toBeGreaterThanOrEqual(countExamples());
}, 180_000);
