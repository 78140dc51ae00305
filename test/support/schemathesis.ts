import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import type { Forge } from "./forge";

export interface SchemathesisRun {
  /** 0: every check passed for every call. */
  code: number | null;
  output: string;
  calls: number;
}

/** Lifts the rate limit, and ends polls and streams before schemathesis times out. */
export const SCHEMATHESIS_ENV = {
  FORGE_RATE_LIMIT_PER_MINUTE: "100000000",
  FORGE_RATE_LIMIT_BURST: "1000000",
  FORGE_MAX_POLL_S: "1",
  FORGE_MAX_STREAM_S: "1",
};

/**
 * Runs schemathesis with all its default checks against a running stack, with the given key.
 * test/contract/schemathesis.toml lists the exceptions and their reasons.
 *
 * @param options further arguments, e.g. the number of examples and the phases.
 */
export async function runSchemathesis(
  forge: Forge,
  key: string,
  options: string[],
): Promise<SchemathesisRun> {
  const python = await pythonEnvironment(saySilently, ["contract"]);
  const folder = mkdtempSync(join(tmpdir(), "forge-schemathesis-"));
  const config = join(checkoutRoot(), "test", "contract", "schemathesis.toml");
  const args = [
    ...["--config-file", config, "run", `${forge.stack.apiUrl}/docs/openapi.json`],
    ...["--header", `X-Service-Api-Key: ${key}`, "--no-color", ...options],
  ];
  // schemathesis stores examples in its working folder.
  const child = spawn(join(python, "..", "schemathesis"), args, { cwd: folder });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part: Buffer) => {
      output += part.toString();
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  rmSync(folder, { recursive: true, force: true });
  return { code, output, calls: Number(/(\d+) generated/.exec(output)?.[1] ?? 0) };
}

/** Workers that complete or fail every job until `stop`. */
export async function finishEverything(forge: Forge): Promise<{ stop(): Promise<void> }> {
  let stopped = false;
  const work = async (id: string): Promise<void> => {
    const worker = await forge.worker(id, { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 });
    for (let n = 0; !stopped; n++) {
      await worker.heartbeat();
      const job = await worker.next(1);
      if (job) await (n % 3 ? worker.complete(job) : worker.fail(job));
    }
  };
  const workers = ["finisher-1", "finisher-2"].map(work);
  return {
    async stop() {
      stopped = true;
      await Promise.all(workers);
    },
  };
}
