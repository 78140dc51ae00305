import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../stack/paths";
import { licenceProblems, npmPackages, pythonPackages } from "../supply-chain/licences";
import {
  LOCK_NAMES,
  LOCKS,
  type LockName,
  lockHeader,
  parseLock,
  readLock,
} from "../supply-chain/python-locks";

/** Lists the problems of a Python lock file. @param text the content of the file. */
export function lockProblems(name: LockName, text: string): string[] {
  const at = `requirements/${name}.txt`;
  if (!text.startsWith(lockHeader(name))) {
    return [`${at} is older than ${LOCKS[name]}: run \`npm run lock:python\``];
  }
  const problems = parseLock(text)
    .filter(({ version, hashes }) => version === "" || hashes === 0)
    .map((each) => `${at}: ${each.name} has no version or no hash`);
  if (text.includes("://") || /^--/m.test(text)) problems.push(`${at} contains a URL or an option`);
  return problems;
}

function main(): void {
  const npm = npmPackages(readFileSync(join(checkoutRoot(), "package-lock.json"), "utf8"));
  const problems = [
    ...LOCK_NAMES.flatMap((name) => lockProblems(name, readLock(name))),
    ...licenceProblems(npm, pythonPackages()),
  ];
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}

if (require.main === module) main();
