/** An agent with its own bucket, on a real S3 server. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { logOf, runJob } from "../support/agent-jobs";
import { download, sha256 } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { writeHandlers } from "../support/own-handlers";

let forge: Forge;
let s3: S3Server;
const home = mkdtempSync(join(tmpdir(), "forge-s3-"));

const HANDLERS = {
  train: `head -c 20000000 /dev/urandom >"$FORGE_OUTPUT_DIR/model.pt"
mkdir "$FORGE_OUTPUT_DIR/tokenizer"; echo vocabulary >"$FORGE_OUTPUT_DIR/tokenizer/vocab.txt"`,
  evaluate: `wc -c <"$FORGE_INPUT_CHECKPOINT_ID/model.pt"; cat "$FORGE_INPUT_CHECKPOINT_ID/tokenizer/vocab.txt"
env | grep -c forge-test-secret || true`,
  audit: `cat "$FORGE_INPUT_DATASET_URI"`,
};

const bucket = (): Record<string, string> => ({
  ...s3.environment,
  S3_BUCKET: "team",
});

(canHaveS3Server() ? describe : describe.skip)("an agent with a bucket of its own", () => {
  beforeAll(async () => {
    s3 = await S3Server.start(home, saySilently);
    forge = await startForge({ HEARTBEAT_INTERVAL: "0.5" });
    mkdirSync(join(s3.directory, "team"));
    await forge.stack.startAgent("box", {
      ...bucket(),
      FORGE_AGENT_CONFIG: writeHandlers(forge, "bucket", HANDLERS),
    });
  });

  afterEach(async () => {
    await forge.proveInvariants();
  });

  afterAll(async () => {
    await forge?.stop();
    await s3?.process.stop();
    rmSync(home, { recursive: true, force: true });
  });

  interface Made {
    uri: string;
    artifact_id: string;
  }
  const train = async (): Promise<{ id: string; artifacts: Made[] }> => {
    const { job_id, result } = await runJob(forge.user, "train", { dataset_id: "d", model: "m" });
    return {
      id: String(result.checkpoint_id),
      ...(await forge.user.get<{ artifacts: Made[] }>(`/api/jobs/${job_id}/artifacts`)),
    };
  };
  const inBucket = (id: string): string =>
    join(s3.directory, "team", "artifacts", "checkpoints", id);

  test("files go to the bucket and to the control plane, where every client finds them", async () => {
    const { id, artifacts } = await train();
    expect(artifacts).toMatchObject([
      { uri: `s3://team/artifacts/checkpoints/${id}/`, manifest: { verified: true } },
    ]);
    const kept = readFileSync(join(inBucket(id), "model.pt"));
    const { bytes } = await download(forge.user, `/api/artifacts/${id}/files/model.pt`);
    expect([kept.length, sha256(kept)]).toEqual([20_000_000, sha256(bytes)]);
  });

  test("without uploads they go to the bucket only, and the next job reads them there", async () => {
    await forge.stack.agents.get("box")?.stop();
    await forge.user.call("DELETE", "/api/workers/box");
    await forge.stack.startAgent("box", {
      ...bucket(),
      ARTIFACTS_UPLOAD: "false",
      FORGE_AGENT_CONFIG: writeHandlers(forge, "bucket", HANDLERS),
    });
    const { id, artifacts } = await train();
    // Files outside the control plane's store are not verified.
    expect(artifacts).toMatchObject([
      { uri: `s3://team/artifacts/checkpoints/${id}/`, manifest: { verified: false } },
    ]);
    expect(readFileSync(join(inBucket(id), "model.pt"))).toHaveLength(20_000_000);
    const evaluate = await runJob(forge.user, "evaluate", { checkpoint_id: id });
    expect(await logOf(forge.user, evaluate.job_id)).toBe(
      "20000000\nvocabulary\n0\n[forge] uploaded 0 files, 0 bytes\n",
    );
  });

  test("a dataset_uri is read with the worker's credentials; a missing one fails the job", async () => {
    const [there, missing] = await Promise.all(
      ["s3://team/artifacts/none.jsonl", "s3://elsewhere/none.jsonl"].map(async (uri) => {
        const { job_id } = await forge.user.submit("audit", { dataset_uri: uri });
        return await untilEnded(forge.user, job_id);
      }),
    );
    for (const job of [there, missing]) {
      expect(job).toMatchObject({ status: "failed", attempts: 1 });
      expect(job?.error).toMatch(/s3:\/\/\w+\/(artifacts\/)?none.jsonl does not exist/);
    }
  });

  test("the agent waits for an unavailable bucket; a worker that starts meanwhile reports it", async () => {
    await s3.process.stop();
    const { job_id } = await forge.user.submit("train", { dataset_id: "d", model: "m" });
    const agent = forge.stack.agents.get("box");
    await waitFor("the upload to fail", () => /upload interrupted/.test(agent?.logTail() ?? ""));
    const env = { ...bucket(), FORGE_AGENT_CONFIG: writeHandlers(forge, "bucket", HANDLERS) };
    await forge.stack.startAgent("late", env);
    const worker = await waitFor("error", async () => {
      const found = await forge.user
        .get<{ status: string }>("/api/workers/late")
        .catch(() => undefined);
      return found?.status === "error" && found;
    });
    expect(worker).toMatchObject({
      status_reason: expect.stringMatching(/bucket team can't be reached/),
    });
    await s3.start();
    expect(await untilEnded(forge.user, job_id, 60_000)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
    await waitFor("it to be well", async () => {
      return (await forge.user.get<{ status: string }>("/api/workers/late")).status === "idle";
    });
  }, 120_000);
});
