import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ApiClient } from "../api-client";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import { sayOnStderr } from "../stack/say";
import type { Stack } from "../stack/stack";

/** So many status calls, in milliseconds: by the SDK, and by its HTTP library alone. */
export interface Overhead {
  sdk_ms: number;
  bare_ms: number;
}

/** Of each client, by name. Both ways take turns, on the same machine in the same minute. */
export async function measureSdkOverhead(
  stack: Stack,
  calls: number,
): Promise<Record<string, Overhead>> {
  const user = new ApiClient(stack.apiUrl, stack.keys.userKey);
  const { job_id } = await user.submit("audit", { dataset_uri: "s3://bench/rows.parquet" });
  const { blocking, awaiting } = await inPython(stack, job_id, calls);
  await user.call("POST", `/api/jobs/${job_id}/cancel`);
  return { Forge: blocking, AsyncForge: awaiting };
}

async function inPython(
  stack: Stack,
  jobId: string,
  calls: number,
): Promise<{ blocking: Overhead; awaiting: Overhead }> {
  const python = await pythonEnvironment(sayOnStderr, ["sdk"]);
  const sdk = join(checkoutRoot(), "sdk", "python");
  const env = {
    ...process.env,
    PYTHONPATH: join(sdk, "src"),
    PYTHONDONTWRITEBYTECODE: "1",
    SERVICE_BASE_URL: stack.apiUrl,
    SERVICE_API_KEY: stack.keys.userKey,
    JOB_ID: jobId,
  };
  const script = join(sdk, "tests", "overhead.py");
  const { stdout } = await promisify(execFile)(python, [script, String(calls)], { env });
  return JSON.parse(stdout) as { blocking: Overhead; awaiting: Overhead };
}
