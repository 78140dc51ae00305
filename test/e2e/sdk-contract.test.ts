/**
 * Runs sdk/contract with every client against the real server: requests, responses, results and
 * errors.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { type Exchange, type Recorder, recordExchanges } from "../support/exchanges";
import { type Forge, startForge } from "../support/forge";
import { writeRecordings } from "../support/recordings";
import {
  compareScenario,
  type Outcome,
  readScenarios,
  type Variables,
} from "../support/sdk-contract";
import { SdkFleet } from "../support/sdk-fleet";
import { type Assignment, RUNNERS, type Runner } from "../support/sdk-runners";

let forge: Forge;
let fleet: SdkFleet;
const scenarios = readScenarios();

interface Run {
  variables: Variables;
  outcomes: Outcome[];
  steps: Exchange[][];
}

const runs = new Map<string, Run[]>();

beforeAll(async () => {
  await pythonEnvironment(saySilently, ["sdk"]);
  forge = await startForge({ FORGE_PUBLIC_URL: "" });
  fleet = await SdkFleet.start(forge);
  // Run the clients in sequence, because an admin's lists would also show the objects of a client
  // that runs at the same time.
  for (const [name, run] of Object.entries(RUNNERS)) runs.set(name, await record(run));
}, 300_000);

afterAll(async () => {
  const release = process.env.FORGE_RECORD_RELEASE;
  const recorded = runs.get("Python");
  if (release && recorded) {
    writeRecordings(
      release,
      scenarios.map((scenario, n) => ({
        ...scenario,
        variables: recorded[n]?.variables ?? {},
        recorded: recorded[n]?.steps ?? [],
      })),
    );
  }
  try {
    await fleet?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

/** Runs each scenario as its own tenant. */
async function record(run: Runner): Promise<Run[]> {
  const recorders: Recorder[] = [];
  try {
    const assignments: Assignment[] = [];
    for (const scenario of scenarios) {
      const { keys, variables } = await fleet.newTenant();
      const recorder = await recordExchanges(forge.stack.apiUrl);
      recorders.push(recorder);
      const { url, stepUrl } = recorder;
      assignments.push({ ...scenario, base_url: url, step_url: stepUrl, keys, variables });
    }
    const outcomes = await run(assignments);
    return assignments.map(({ variables }, n) => ({
      variables,
      outcomes: outcomes[n] ?? [],
      steps: recorders[n]?.steps ?? [],
    }));
  } finally {
    await Promise.all(recorders.map((recorder) => recorder.close()));
  }
}

describe.each(Object.keys(RUNNERS))("%s", (client) => {
  test.each(scenarios.map((scenario, n) => [scenario.file, scenario.name, n] as const))(
    "%s: %s",
    (_file, _name, n) => {
      const run = runs.get(client)?.[n];
      const scenario = scenarios[n];
      if (!run || !scenario) throw new Error("the scenario was not run");
      expect(compareScenario(scenario, run.outcomes, run.steps, run.variables)).toEqual([]);
    },
  );
});

/**
 * Operations that the SDKs don't have, because they are for workers, for Prometheus, or for
 * browsers with a download ticket.
 */
const NOT_FOR_USERS = [
  "downloadByTicket",
  "getMetrics",
  "heartbeat",
  "nextJob",
  "jobResult",
  "appendJobLog",
  "uploadArtifactFile",
  "uploadCheckpoint",
  "downloadJobInput",
];

/**
 * Maps a path of the OpenAPI document to the older path that the clients request instead. The older
 * path also works with servers of release 0.1.0.
 */
const OLDER_PATHS: Record<string, string> = { "/api/audit-log": "/api/audit" };

test.each(Object.keys(RUNNERS))("%s: has every operation of the OpenAPI document", (client) => {
  const document = JSON.parse(
    readFileSync(join(checkoutRoot(), "docs", "openapi.json"), "utf8"),
  ) as { paths: Record<string, Record<string, { operationId: string }>> };
  const sent = runs.get(client)?.flatMap((run) => run.steps.flat()) ?? [];
  const isSent = (method: string, template: string): boolean => {
    const pattern = (OLDER_PATHS[template] ?? template)
      .replace(/\{path\}/g, ".+")
      .replace(/\{\w+\}/g, "[^/]+");
    return sent.some(
      ({ request }) =>
        request.method === method.toUpperCase() && new RegExp(`^${pattern}$`).test(request.path),
    );
  };
  const missing = Object.entries(document.paths).flatMap(([template, operations]) =>
    Object.entries(operations)
      .filter(([method]) => !isSent(method, template))
      .map(([, { operationId }]) => operationId),
  );
  expect(missing.sort()).toEqual([...NOT_FOR_USERS].sort());
});
