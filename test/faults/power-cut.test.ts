import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

test("a job that runs when everything is killed finishes after the next start", async () => {
  const python = await pythonEnvironment(saySilently);
  const dataset = join(forge.stack.storeDir, "artifacts", "samples", "rows.jsonl");
  const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  execFileSync(python, [generator, "--rows", "40000", "--out", dataset]);
  const agentEnv = { HEARTBEAT_INTERVAL: "0.5" };
  await forge.stack.startAgent("box", agentEnv);
  const { job_id } = await forge.user.submit("audit", {
    dataset_uri: "forge://artifacts/samples/rows.jsonl",
  });
  await waitFor("the audit to be under way", async () => {
    const job = await forge.user.job(job_id);
    return (job.progress ?? 0) > 0;
  });

  await forge.stack.killAll();
  await forge.stack.startPostgres();
  await forge.stack.startTemporal();
  await forge.stack.startServer();
  expect(await forge.user.job(job_id)).toMatchObject({ status: "running", attempts: 1 });
  await forge.stack.startAgent("box", agentEnv);

  const job = await untilEnded(forge.user, job_id, 60_000);
  expect(job).toMatchObject({ status: "completed", attempts: 2, result: { num_rows: 40_000 } });
  await forge.proveInvariants();
}, 120_000);
