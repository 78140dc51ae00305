import { execFile } from "node:child_process";
import { join } from "node:path";
import type { Forge } from "./forge";

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * The `application_name` of the database connections of `runForgeServer`. The connections of the
 * servers have other names.
 */
export const OPERATOR = "operator";

/** Runs a command of `forge-server` on a test's stack, like its operator. */
export async function runForgeServer(forge: Forge, ...args: string[]): Promise<Ended> {
  const program = join(forge.stack.release, "bin", "forge-server.js");
  const database = new URL(forge.stack.databaseUrl);
  database.searchParams.set("application_name", OPERATOR);
  const env = {
    ...process.env,
    FORGE_DATABASE_URL: database.href,
    FORGE_STORE_DIR: forge.stack.storeDir,
    TEMPORAL_ADDRESS: forge.stack.temporalAddress,
    FORGE_LOG_LEVEL: "warn",
  };
  return await new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...args], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number") resolve({ code, stdout, stderr });
      else reject(new Error(`forge-server ${args.join(" ")}: ${error?.message}\n${stderr}`));
    });
  });
}

/** Runs `audit verify`, which prints the broken entries and the end of the log. */
export const verifyAudit = (forge: Forge, ...more: string[]): Promise<Ended> =>
  runForgeServer(forge, "audit", "verify", ...more);

/** Runs `billing recompute --check`, which prints the number of records and the result. */
export const recomputeBills = (forge: Forge, ...more: string[]): Promise<Ended> =>
  runForgeServer(forge, "billing", "recompute", "--check", ...more);
