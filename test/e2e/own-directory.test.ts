/** Agents whose ARTIFACTS_DIR is not the control plane's store. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { logOf, runJob } from "../support/agent-jobs";
import { download, type Manifest, manifestErrors } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { writeHandlers } from "../support/own-handlers";

let forge: Forge;
const folder = mkdtempSync(join(tmpdir(), "forge-own-"));

const HANDLERS = {
  train: `printf weights >"$FORGE_OUTPUT_DIR/model.pt"`,
  evaluate: `cat "$FORGE_INPUT_CHECKPOINT_ID/model.pt"; echo`,
};

beforeAll(async () => {
  forge = await startForge({ HEARTBEAT_INTERVAL: "0.5" });
});

afterAll(async () => {
  await forge?.proveInvariants();
  await forge?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const agent = async (name: string, type: "train" | "evaluate"): Promise<unknown> =>
  await forge.stack.startAgent(name, {
    ARTIFACTS_DIR: join(folder, name),
    ALLOW_JOB_TYPES: type,
    FORGE_AGENT_CONFIG: writeHandlers(forge, name, { [type]: HANDLERS[type] }),
  });

test("another machine and the owner find what one machine creates", async () => {
  await Promise.all([agent("trains", "train"), agent("evaluates", "evaluate")]);
  const train = await runJob(forge.user, "train", { dataset_id: "d", model: "m" });
  const id = String(train.result.checkpoint_id);
  const kept = join(folder, "trains", "checkpoints", id, "model.pt");
  expect(readFileSync(kept, "utf8")).toBe("weights");
  const { bytes } = await download(forge.user, `/api/artifacts/${id}/files/model.pt`);
  expect(bytes.toString()).toBe("weights");
  const { manifest } = await forge.user.get<{ manifest: Manifest }>(`/api/artifacts/${id}`);
  expect([manifest.verified, manifestErrors(manifest)]).toEqual([true, []]);
  const evaluate = await runJob(forge.user, "evaluate", { checkpoint_id: id });
  expect(await logOf(forge.user, evaluate.job_id)).toMatch(/^weights\n/);
});
