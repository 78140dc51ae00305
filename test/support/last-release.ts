import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";

/**
 * The first migration that the last release does not have. Change it with each release. The last
 * release is the commit before the one that added this migration.
 */
export const FIRST_NEW_MIGRATION = "0050_job_types.sql";

const MIGRATIONS = "platform/postgres/migrations";
/** What the build copies besides the compiled sources. */
const COPIED = [MIGRATIONS, "services/fleet/bootstrap", "bin/api-reference"];

interface Release {
  dist: string;
  remove(): void;
}

/**
 * Builds the server of the last release from the repository's history, with today's packages. Types
 * are not checked, because packages may have changed.
 */
export function lastRelease(): Release {
  const root = checkoutRoot();
  const folder = mkdtempSync(join(tmpdir(), "forge-last-release-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const run = (cwd: string, program: string, ...args: string[]): Buffer =>
      execFileSync(program, args, { cwd, maxBuffer: 256 * 1024 * 1024 });
    const added = ["log", "-1", "--diff-filter=A", "--format=%H^", "--"];
    const commit = run(root, "git", ...added, `${MIGRATIONS}/${FIRST_NEW_MIGRATION}`);
    const archive = run(root, "git", "archive", String(commit).trim());
    execFileSync("tar", ["-x"], { cwd: folder, input: archive });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const settings = { extends: "./tsconfig.json", compilerOptions: { noCheck: true } };
    const include = ["bin", "workflows", "activities", "dev/bundle-workflows.ts"];
    writeFileSync(join(folder, "tsconfig.server.json"), JSON.stringify({ ...settings, include }));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    run(folder, process.execPath, tsc, "-p", "tsconfig.server.json");
    const dist = join(folder, "dist");
    for (const files of COPIED) {
      cpSync(join(folder, files), join(dist, files), { recursive: true });
    }
    run(folder, process.execPath, join(dist, "dev/bundle-workflows.js"));
    return { dist, remove };
  } catch (error) {
    remove();
    throw error;
  }
}
