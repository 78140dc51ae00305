import { relative, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureChromium } from "../stack/chromium";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import { canHaveS3Server, s3Binary } from "../stack/s3-server";
import { sayOnStderr as say } from "../stack/say";
import { temporalBinary } from "../stack/temporal-binary";
import { lint, runChecks } from "./checks";
import { runJest } from "./jest";
import { fastFolder } from "./memory-folder";
import { runPython } from "./python";
import { checkRunTime, keepTimes, report } from "./report";
import { endRunning, runInherited } from "./run";
import { RunFolder } from "./run-folder";
import { TestServers } from "./servers";
import { DOUBLED, IN_JEST, MEASURED, SLOW } from "./suites";
import { failedTally, type Tally } from "./tally";
import { readTimes } from "./times";

const ALL = ["lint", ...Object.keys(IN_JEST), "python", "bench"];
/** The suites of `npm run test:slow`, which are not part of `npm test`. */
const MORE = ["slow", "doubled"];

/**
 * The number of test files that jest runs at a time. pytest may run at the same time. A test file
 * spends more than half of its time waiting, so five files keep two cores busy.
 */
const LANES = 5;

/**
 * The number of test files that jest runs at a time in the slow suites. These files start servers
 * of their own, and pytest does not run meanwhile.
 */
const SLOW_LANES = 3;

/**
 * The run is ended after this time. If it takes longer, something hangs, for example a test that
 * blocks its process.
 */
const HANGS_AFTER_MS = 40 * 60_000;
/** Longest wait for a hanging run's processes to end. */
const CLEAN_UP_MS = 60_000;

/** An argument with a slash is a path of a test file, or a prefix of paths. Others are suites. */
const isPath = (name: string): boolean => name.includes("/");
const isInJest = (name: string): boolean => name in IN_JEST || isPath(name);
const isBelowTest = (name: string): boolean => name.startsWith("test/");
/** Whether the tests need servers. Unit tests need none. */
const isServed = (name: string): boolean =>
  isBelowTest(name) || (name in IN_JEST && name !== "unit");

/**
 * `npm test [-- suite-or-path …]`: runs all suites, or the named ones. Prints the totals on the
 * last line.
 */
async function main(): Promise<void> {
  const named = process.argv
    .slice(2)
    .map((name) => (isPath(name) ? relative(checkoutRoot(), resolve(name)) : name));
  // Let Python write bytecode files. Without these files, every Python process compiles all of its
  // imports and takes twice as long.
  delete process.env.PYTHONDONTWRITEBYTECODE;
  // Temporal is a Go program. A higher GOGC makes it collect garbage less often.
  process.env.GOGC ??= "300";
  // Some tests compare the output of commands, which must have no colours.
  delete process.env.FORCE_COLOR;
  const known = [...ALL, ...MORE];
  const unknown = named.find((name) => !known.includes(name) && !isPath(name));
  if (unknown) throw new Error(`no suite "${unknown}"; there are ${known.join(", ")}`);
  const chosen = named.length > 0 ? named : ALL;
  await install(chosen);
  const onDisk = await RunFolder.make();
  // The slow suites have their files on disk, not in memory: they write large files, and some
  // measure times that depend on a disk.
  const isSlow = MORE.some((name) => chosen.includes(name));
  const folder = isSlow ? onDisk : await RunFolder.make(fastFolder());
  process.env.TMPDIR = `${folder.path}/`;
  const endAll = async (): Promise<void> => {
    await endRunning();
    await folder.end();
    await onDisk.end();
  };
  // An interrupted run calls `cleanUp` twice at the same time: in the signal's handler and below.
  let cleaned: Promise<void> | undefined;
  const cleanUp = (): Promise<void> => {
    cleaned ??= endAll();
    return cleaned;
  };
  const interrupted = onInterrupt(cleanUp);
  if (!isSlow && !named.some(isPath)) endIfHanging(cleanUp);
  const timed = Object.keys(readTimes());
  const isFirst = !["e2e", "contract", "faults"].every((suite) =>
    timed.some((path) => path.startsWith(`test/${suite}/`)),
  );
  const started = performance.now();
  try {
    const tallies = await runSuites(chosen, `${onDisk.path}/`);
    if (interrupted.aborted) return;
    const seconds = (performance.now() - started) / 1000;
    if (named.length === 0) tallies.push(checkRunTime(seconds, isFirst));
    if (!isSlow) keepTimes(tallies);
    report(tallies, seconds);
  } finally {
    await cleanUp();
  }
}

/**
 * Ends the run at a signal. Ends the started processes first, because they don't get the signal.
 */
function onInterrupt(cleanUp: () => Promise<void>): AbortSignal {
  const interrupt = new AbortController();
  for (const [signal, code] of [
    ["SIGHUP", 129],
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    // Ignore further signals while the clean-up runs.
    process.on(signal, () => {
      if (interrupt.signal.aborted) return;
      say("\nInterrupted; ending all started processes …");
      interrupt.abort();
      void cleanUp().finally(() => process.exit(code));
    });
  }
  return interrupt.signal;
}

function endIfHanging(cleanUp: () => Promise<void>): void {
  const end = (): void => {
    say(`\nThe run has taken ${HANGS_AFTER_MS / 60_000} minutes; ending all started processes …`);
    process.stdout.write("\n0 passed, 1 failed\n");
    void Promise.race([cleanUp(), sleep(CLEAN_UP_MS)]).finally(() => process.exit(1));
  };
  setTimeout(end, HANGS_AFTER_MS).unref();
}

/** Installs what the suites need, before any test's time-out starts. */
async function install(chosen: string[]): Promise<void> {
  const has = (...names: string[]): boolean =>
    names.some((name) => chosen.includes(name)) || chosen.some(isBelowTest);
  if (has("e2e", "contract", "faults", "browser", "bench", ...MORE)) {
    await temporalBinary(say);
    await pythonEnvironment(say, ["runtime", "train", "sdk", "terminal"]);
    if (canHaveS3Server()) await s3Binary(say);
    else say("Go is not installed, so there is no S3 server; skipping its tests");
  }
  if (has("browser")) ensureChromium(say);
  if (has("contract", "slow")) await pythonEnvironment(say, ["contract"]);
  if (has("python")) await pythonEnvironment(say, ["runtime", "train", "tests", "sdk"]);
}

/**
 * Runs jest. Meanwhile, runs lint and the Python suite, one after the other. Then runs the slow
 * suites. The benchmark runs last and alone, because it measures time.
 *
 * @param onDisk the folder for the benchmark's files. The benchmark's commits must reach a disk.
 */
async function runSuites(chosen: string[], onDisk: string): Promise<Tally[]> {
  const inJest = chosen.filter(isInJest);
  const others = runOthers(chosen).catch((error: unknown) => [
    failedTally("lint and python", String(error)),
  ]);
  const both = [inJest.length > 0 ? runInJest(inJest) : [], others];
  const tallies = (await Promise.all(both)).flat();
  if (chosen.includes("slow")) {
    const env = { TEST_SLOW: "1" };
    tallies.push(...(await runJest({ suites: { slow: SLOW }, lanes: SLOW_LANES, env })));
    tallies.push(...(await runJest({ suites: { measured: MEASURED }, lanes: 1, env })));
  }
  if (chosen.includes("doubled")) {
    const env = { TEST_DOUBLED: "true" };
    tallies.push(...(await runJest({ suites: { doubled: DOUBLED }, lanes: SLOW_LANES, env })));
  }
  if (chosen.includes("bench")) {
    const command = ["dist/dev/bench/bench.js", "--short"];
    const run: typeof runInherited = (program, args) =>
      runInherited(program, args, { TMPDIR: onDisk });
    tallies.push(await runChecks("bench", process.execPath, [command], run));
  }
  return tallies;
}

async function runInJest(names: string[]): Promise<Tally[]> {
  const suites = Object.fromEntries(names.map((name) => [name, IN_JEST[name] ?? [name]]));
  if (!names.some(isServed)) return await runJest({ suites, lanes: LANES, env: {} });
  const areFiles = names.every((name) => name.endsWith(".test.ts"));
  const lanes = areFiles ? Math.min(LANES, names.length) : LANES;
  const servers = new TestServers(lanes);
  try {
    await servers.start();
    const tallies = await runJest({ suites, lanes, env: servers.environment });
    return [...tallies, ...servers.ended.map((failure) => failedTally("servers", failure))];
  } catch (error) {
    return [failedTally(names.join(", "), `the servers did not start: ${String(error)}`)];
  } finally {
    await servers.stop();
  }
}

async function runOthers(chosen: string[]): Promise<Tally[]> {
  const tallies: Tally[] = [];
  if (chosen.includes("lint")) tallies.push(...(await lint()));
  if (chosen.includes("python")) {
    const interpreter = await pythonEnvironment(say, ["runtime", "train", "tests", "sdk"]);
    tallies.push(...(await runPython(interpreter)));
  }
  return tallies;
}

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
