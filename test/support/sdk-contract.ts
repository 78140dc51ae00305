import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import type { Exchange } from "./exchanges";
import { differences, type Expectation, filledIn } from "./expectations";

/**
 * One call of an SDK: what it sends, receives, and returns or raises. See sdk/contract/README.md.
 */
export interface Step {
  call: string;
  /** The key to use; by default the user's. */
  as?: "admin" | "stranger";
  args?: unknown[];
  options?: Record<string, unknown>;
  /** Variables for later steps: the name of each one, and the path of its value in the result. */
  keep?: Record<string, string>;
  exchanges?: { request: Expectation; answer: Expectation }[];
  /** For a call that polls: the paths that it may request. Replaces `exchanges`. */
  polls?: string[];
  result?: Expectation;
  error?: Expectation;
}

export interface Scenario {
  file: string;
  name: string;
  steps: Step[];
}

/** The result or the error that a runner reports for a step. */
export interface Outcome {
  result?: unknown;
  error?: unknown;
}

export type Variables = Record<string, string>;

const FOLDER = join(checkoutRoot(), "sdk", "contract");

/** Every scenario of sdk/contract. */
export function readScenarios(): Scenario[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) => {
      const scenarios = JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Scenario[];
      return scenarios.map((scenario) => ({ ...scenario, file }));
    });
}

/**
 * Lists all differences from the scenario: in the recorded requests and responses, and in the
 * results and errors that the client reported.
 *
 * @param recorded the exchanges of each step; undefined: compare only results and errors.
 */
export function compareScenario(
  scenario: Scenario,
  outcomes: Outcome[],
  recorded: Exchange[][] | undefined,
  given: Variables,
): string[] {
  let variables = given;
  return scenario.steps.flatMap((step, n) => {
    const outcome = outcomes[n] ?? {};
    variables = { ...variables, ...kept(step, outcome.result) };
    const expected = filledIn(step, variables);
    const sent = recorded ? compareSent(expected, recorded[n]) : [];
    const found = [...compareOutcome(expected, outcome), ...sent];
    return found.map((difference) => `step ${n + 1}, ${step.call}: ${difference}`);
  });
}

export function kept(step: Step, result: unknown): Variables {
  const found = Object.entries(step.keep ?? {}).map(([name, path]) => [name, at(result, path)]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function at(value: unknown, path: string): string | undefined {
  const found = path
    .split(".")
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null)?.[name], value);
  return found === undefined ? undefined : String(found);
}

function compareOutcome(expected: Step, outcome: Outcome): string[] {
  if ("error" in expected) return differences(expected.error, outcome.error, "its error");
  if (outcome.error !== undefined) return [`it raised ${JSON.stringify(outcome.error)}`];
  return "result" in expected ? differences(expected.result, outcome.result, "its result") : [];
}

function compareSent(expected: Step, exchanges: Exchange[] = []): string[] {
  if (expected.polls) {
    const strange = exchanges.filter(
      ({ request }) => request.method !== "GET" || !expected.polls?.includes(request.path),
    );
    if (exchanges.length === 0) return ["it asked nothing"];
    return strange.map(({ request }) => `it sent ${request.method} ${request.path}`);
  }
  const wanted = expected.exchanges ?? [];
  if (exchanges.length !== wanted.length) {
    const sent = exchanges.map(({ request }) => `${request.method} ${request.path}`);
    return [`it sent ${wanted.length} requests, expected, and in truth: ${sent.join(", ")}`];
  }
  return wanted.flatMap((each, n) => differences(each, exchanges[n], `exchange ${n + 1}`));
}
