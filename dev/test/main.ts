import { pythonEnvironment } from "../stack/python";
import { canHaveS3Server, s3Binary } from "../stack/s3-server";
import { sayOnStderr as say } from "../stack/say";
import { temporalBinary } from "../stack/temporal-binary";
import { lint, runChecks } from "./checks";
import { runJest } from "./jest";
import { runPython } from "./python";
import { judgeBudget, report } from "./report";
import { runHere } from "./run";
import { TestServers } from "./servers";
import type { Tally } from "./tally";

/** Suites of jest: where their files lie. */
const IN_JEST: Record<string, string[]> = {
  unit: [
    "core/",
    "infra/",
    "agent-bridge/",
    "api/",
    "activities/",
    "workflows/",
    "dev/",
    "sdk/typescript/",
  ],
  e2e: ["test/e2e/"],
  contract: ["test/contract/"],
  faults: ["test/faults/"],
};
const ALL = ["lint", ...Object.keys(IN_JEST), "python", "bench"];

/** `npm run test:slow`: what takes longer, and the long forms of tests whose short form is in `npm test`. */
const SLOW = [
  "test/slow/",
  "test/faults/handlers",
  "test/faults/pipelines",
  "test/faults/billing",
  "test/faults/sdk",
  "test/e2e/large-files",
];

/** Test files that run at once. They wait for half of their time, so two cores are busy with four. */
const LANES = 4;
const PYTHON_LANES = 2;

const isServed = (suite: string): boolean => suite in IN_JEST && suite !== "unit";

/** `npm test [-- suite …]`: every suite, or those named; ends with one line of totals. */
async function main(): Promise<void> {
  const named = process.argv.slice(2);
  // Without bytecode files every Python process compiles all that it imports, which doubles its time.
  delete process.env.PYTHONDONTWRITEBYTECODE;
  const unknown = named.find((name) => ![...ALL, "slow"].includes(name));
  if (unknown) throw new Error(`no suite "${unknown}"; there are ${[...ALL, "slow"].join(", ")}`);
  const chosen = named.length > 0 ? named : ALL;
  await install(chosen);
  const started = performance.now();
  const tallies = await runSuites(chosen);
  const seconds = (performance.now() - started) / 1000;
  if (named.length === 0) tallies.push(judgeBudget(seconds));
  report(tallies, seconds);
}

/** Before the clock of any test runs. */
async function install(chosen: string[]): Promise<void> {
  const has = (...names: string[]): boolean => names.some((name) => chosen.includes(name));
  if (has("e2e", "contract", "faults", "bench", "slow")) {
    await temporalBinary(say);
    await pythonEnvironment(say, ["runtime", "train", "sdk", "terminal"]);
    if (canHaveS3Server()) await s3Binary(say);
    else say("There is no Go here to build an S3 server with: tests against one are left out");
  }
  if (has("contract", "slow")) await pythonEnvironment(say, ["contract"]);
  if (has("python")) await pythonEnvironment(say, ["runtime", "train", "tests", "sdk"]);
}

/**
 * Runs jest and, at the same time, the checks that jest does not run, one after the other. The benchmark
 * runs last and alone, because it measures time.
 */
async function runSuites(chosen: string[]): Promise<Tally[]> {
  const inJest = chosen.filter((name) => name in IN_JEST);
  const both = [inJest.length > 0 ? runInJest(inJest) : [], runOthers(chosen)];
  const tallies = (await Promise.all(both)).flat();
  if (chosen.includes("slow")) {
    tallies.push(
      ...(await runJest({ suites: { slow: SLOW }, lanes: 2, env: { FORGE_SLOW: "1" } })),
    );
  }
  if (chosen.includes("bench")) {
    const command = ["dist/dev/bench/bench.js", "--short"];
    tallies.push(await runChecks("bench", process.execPath, [command], runHere));
  }
  return tallies;
}

async function runInJest(names: string[]): Promise<Tally[]> {
  const servers = names.some(isServed) ? await TestServers.start() : undefined;
  try {
    const suites = Object.fromEntries(names.map((name) => [name, IN_JEST[name] ?? []]));
    return await runJest({ suites, lanes: LANES, env: servers?.environment ?? {} });
  } finally {
    await servers?.stop();
  }
}

async function runOthers(chosen: string[]): Promise<Tally[]> {
  const tallies: Tally[] = [];
  if (chosen.includes("lint")) tallies.push(...(await lint()));
  if (chosen.includes("python")) {
    const interpreter = await pythonEnvironment(say, ["runtime", "train", "tests", "sdk"]);
    tallies.push(...(await runPython(interpreter, PYTHON_LANES)));
  }
  return tallies;
}

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
