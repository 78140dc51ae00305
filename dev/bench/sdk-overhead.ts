import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ApiClient } from "../api-client";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import { sayOnStderr } from "../stack/say";
import type { Stack } from "../stack/stack";

const SDKS = join(checkoutRoot(), "sdk");

/** Total time of all status calls, in ms: with the SDK, and with its HTTP library alone. */
export interface Overhead {
  sdk_ms: number;
  bare_ms: number;
}

/**
 * Measures the overhead of each SDK client. Returns it by the client's name. The measuring programs
 * alternate between the SDK and its HTTP library.
 */
export async function measureSdkOverhead(
  stack: Stack,
  calls: number,
): Promise<Record<string, Overhead>> {
  const user = new ApiClient(stack.apiUrl, stack.keys.userKey);
  const { job_id } = await user.submit("audit", { dataset_uri: "s3://bench/rows.parquet" });
  const env = {
    ...process.env,
    SERVICE_BASE_URL: stack.apiUrl,
    SERVICE_API_KEY: stack.keys.userKey,
    JOB_ID: job_id,
  };
  const python = await pythonEnvironment(sayOnStderr, ["sdk"]);
  const { blocking, awaiting } = await measured<"blocking" | "awaiting">(
    python,
    [join(SDKS, "python", "tests", "overhead.py"), String(calls)],
    {
      ...env,
      PYTHONPATH: join(SDKS, "python", "src"),
    },
  );
  const script = join(SDKS, "typescript", "test", "overhead.mjs");
  const { fetching } = await measured<"fetching">(process.execPath, [script, String(calls)], env);
  await user.call("POST", `/api/jobs/${job_id}/cancel`);
  return {
    "Forge in Python": blocking,
    "AsyncForge in Python": awaiting,
    "Forge in TypeScript": fetching,
  };
}

/** Runs a measuring program, which prints JSON: an `Overhead` for each kind of client. */
async function measured<Way extends string>(
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<Record<Way, Overhead>> {
  const { stdout } = await promisify(execFile)(program, args, { env });
  return JSON.parse(stdout) as Record<Way, Overhead>;
}
