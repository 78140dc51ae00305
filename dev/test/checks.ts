import { SERVER_FOLDERS } from "../source-folders";
import { sayOnStderr as say } from "../stack/say";
import { type Ended, runQuietly } from "./run";
import { emptyTally, type Tally } from "./tally";

/**
 * Runs commands one after the other. Each command counts as one test, which passes if the command
 * exits with 0. Prints the output of failed commands.
 */
export async function runChecks(
  suite: string,
  program: string,
  commands: string[][],
  runOne: (program: string, args: string[]) => Promise<Ended> = runQuietly,
): Promise<Tally> {
  const tally = emptyTally(suite);
  for (const command of commands) {
    const started = performance.now();
    const { code, output } = await runOne(program, command);
    const name = command.join(" ");
    const seconds = (performance.now() - started) / 1000;
    tally.seconds += seconds;
    if (code === 0) tally.passed += 1;
    else {
      tally.failed += 1;
      tally.failures.push(`${name}\n${output.trim().split("\n").slice(-60).join("\n")}`);
    }
    say(`${code === 0 ? "PASS" : "FAIL"} ${name} (${seconds.toFixed(1)} s)`);
    if (code !== 0) say(output);
  }
  return tally;
}

/**
 * Checks style, unused code, the OpenAPI document, slow regular expressions, locks and licences,
 * types, import rules and, if shellcheck is installed, shell scripts.
 */
export async function lint(): Promise<Tally[]> {
  const checks = await runChecks("lint", process.execPath, [
    ["node_modules/@biomejs/biome/bin/biome", "ci", "--colors=off", "--error-on-warnings"],
    ["node_modules/knip/bin/knip.js"],
    ["dist/dev/openapi/openapi.js"],
    ["dist/dev/lint/regular-expressions.js"],
    ["dist/dev/lint/supply-chain.js"],
    ["node_modules/typescript/bin/tsc", "-p", "sdk/typescript/tsconfig.test.json"],
    ["node_modules/typescript/bin/tsc", "-p", "sdk/typescript/tsconfig.browser.json"],
    ["node_modules/typescript/bin/tsc", "-p", "dashboard"],
    ["node_modules/typescript/bin/tsc", "-p", "dashboard/tsconfig.test.json"],
    [
      "node_modules/dependency-cruiser/bin/dependency-cruise.mjs",
      "--config",
      ".dependency-cruiser.cjs",
      ...SERVER_FOLDERS,
      "dev",
      "test",
      "sdk/typescript/src",
      "dist/workflows",
    ],
  ]);
  const hasShellcheck = (await runQuietly("shellcheck", ["--version"])).code === 0;
  if (!hasShellcheck) {
    say("shellcheck is not installed; skipping the check of shell scripts");
    return [checks];
  }
  const scripts = await runChecks("shell scripts", "shellcheck", [
    [".ci/run"],
    ["services/fleet/bootstrap/bootstrap.sh"],
    ["platform/compose/make-secrets.sh"],
    ["test/support/systemctl.sh"],
  ]);
  return [checks, scripts];
}
