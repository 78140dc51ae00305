import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { checkoutRoot } from "../../stack/paths";
import { sayOnStderr as say } from "../../stack/say";
import { currentLoad, factsOf } from "./machine";
import { measureCost } from "./measure-cost";
import { measureFleet, measureWaitingPolls } from "./measure-fleet";
import { measureGrowth } from "./measure-growth";
import { measureCallsAlone, measureDispatch } from "./measure-latency";
import { measureHeartbeats, measureReads } from "./measure-requests";
import { measureStart } from "./measure-start";
import { measureBurst, measureThroughput } from "./measure-throughput";
import type { Row } from "./rows";
import { FULL, QUICK, type Scale } from "./scale";
import { Stage } from "./stage";
import { type Report, tableOf, writeTable } from "./table";

/**
 * `npm run bench` measures Forge and its peers from outside of their processes
 * (docs/performance.md).
 */

type Measure = (stage: Stage, scale: Scale) => Promise<Row[]>;

const MEASURES: Record<string, Measure> = {
  P1: measureThroughput,
  P2: measureDispatch,
  P3: measureHeartbeats,
  P4: measureReads,
  P5: measureCallsAlone,
  P6: measureFleet,
  P7: measureWaitingPolls,
  P8: measureCost,
  P9: measureBurst,
  P10: measureStart,
  P11: measureGrowth,
};

interface Options {
  only?: string;
  quick?: boolean;
  write?: boolean;
}

async function run({ only, quick = false, write = false }: Options): Promise<void> {
  const names = only?.split(",") ?? Object.keys(MEASURES);
  const unknown = names.find((name) => !(name in MEASURES));
  if (unknown !== undefined) {
    throw new Error(`no measurement ${unknown}; there are ${Object.keys(MEASURES).join(", ")}`);
  }
  if (write && (only !== undefined || quick)) {
    throw new Error("--write needs a full run: leave out --only and --quick");
  }
  ignoreSettings();
  const loadBefore = currentLoad();
  const began = performance.now();
  const stage = new Stage();
  const interrupt = (): void => void stage.stop().finally(() => process.exit(130));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, interrupt);
  try {
    say("Starting Postgres, Temporal and the peers …");
    await stage.start();
    const facts = { ...factsOf(await stage.versions()), loadBefore };
    const rows = quick
      ? (await measureAll(stage, names, QUICK)).map(withoutGoal)
      : await measureAll(stage, names, FULL);
    const seconds = (performance.now() - began) / 1000;
    publish({ facts, form: quick ? "quick" : "full", seconds, rows }, write && !process.exitCode);
  } finally {
    await stage.stop();
  }
}

/** Environment variables that say how programs are installed, not how Forge behaves. */
const OF_INSTALLATION = ["FORGE_CACHE_DIR", "FORGE_TORCH", "TEMPORAL_CLI_PATH"];

/** Removes the user's settings of Forge. The bench compares Forge with its default settings. */
function ignoreSettings(): void {
  for (const name of Object.keys(process.env)) {
    const isSetting = /^(FORGE|TEMPORAL)_/.test(name);
    if (isSetting && !OF_INSTALLATION.includes(name)) delete process.env[name];
  }
}

/** Runs the measurements. Leaves out a measurement that fails, and sets the exit code to 1. */
async function measureAll(stage: Stage, names: string[], scale: Scale): Promise<Row[]> {
  const rows: Row[] = [];
  for (const name of names) {
    const begin = performance.now();
    try {
      rows.push(...((await MEASURES[name]?.(stage, scale)) ?? []));
      say(`Measured ${name} in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    } catch (error) {
      if (stage.isStopping) throw error;
      say(`${name} failed: ${String(error)}`);
      process.exitCode = 1;
    }
  }
  return rows;
}

/** A quick run measures too little to tell whether a goal is met. */
const withoutGoal = ({ goal: _goal, isMet: _isMet, ...row }: Row): Row => row;

function publish(report: Report, write: boolean): void {
  const folder = join(checkoutRoot(), ".forge");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "bench.json");
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  const table = tableOf(report);
  process.stdout.write(`${table}\n`);
  if (write) writeTable(table);
  for (const { id, what, generatorShare = 0 } of report.rows) {
    if (generatorShare > GENERATOR_LIMIT)
      say(`${id}, ${what}: the load generator was the bottleneck`);
  }
  say(`All values: ${file}`);
}

/** Share of a core above which the load generator counts as the bottleneck. */
const GENERATOR_LIMIT = 0.8;

new Command("npm run bench --")
  .description("Measure Forge and its peers over HTTP")
  .option("--only <names>", `comma-separated, of ${Object.keys(MEASURES).join(", ")}`)
  .option(
    "--quick",
    "take some minutes; show only large differences, and compare nothing with the goals",
  )
  .option("--write", "also write the table to docs/performance.md")
  .action(run)
  .parseAsync()
  .catch((error: unknown) => {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exit(1);
  });
