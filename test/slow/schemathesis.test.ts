import { type Forge, startForge } from "../support/forge";
import { finishEverything, runSchemathesis, SCHEMATHESIS_ENV } from "../support/schemathesis";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(SCHEMATHESIS_ENV);
});

afterAll(async () => {
  await forge?.stop();
});

/**
 * Schemathesis sends generated data, valid and invalid, and chains of calls along the links of the
 * OpenAPI document.
 */
test("schemathesis finds no problem in 5,000 calls as a user, nor as an admin and a worker", async () => {
  const workers = await finishEverything(forge);
  const { userKey, adminKey, workerKey } = forge.stack.keys;
  const forAdmins = ["--include-tag", "Users"];
  // Leaves out the phase that makes chains of calls: the OpenAPI document has no links between the
  // operations of the worker protocol.
  const forWorkers = ["--include-tag", "Worker protocol", "--phases", "examples,coverage,fuzzing"];
  const runs = [
    await runSchemathesis(forge, userKey, ["--max-examples", "60"]),
    await runSchemathesis(forge, adminKey, ["--max-examples", "100", ...forAdmins]),
    await runSchemathesis(forge, workerKey, ["--max-examples", "100", ...forWorkers]),
  ];
  await workers.stop();
  for (const run of runs) {
    process.stderr.write(`${run.output.trim().split("\n").slice(-25).join("\n")}\n`);
    if (run.code !== 0) throw new Error(run.output);
  }
  expect(runs[0]?.calls).toBeGreaterThanOrEqual(5_000);
}, 1_200_000);
