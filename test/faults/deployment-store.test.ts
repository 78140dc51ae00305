/** A deployment whose bucket is unavailable when it starts and when it is stopped. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { artifactPrefix, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { artifactOf } from "../support/artifacts";
import { readRecord } from "../support/billing";
import { read, servingWorker, until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded, untilRetried } from "../support/jobs";

const DAY_S = 86_400;

let forge: Forge;
let s3: S3Server;
const home = mkdtempSync(join(tmpdir(), "forge-away-"));

(canHaveS3Server() ? describe : describe.skip)(
  "a deployment whose artifact store is unavailable",
  () => {
    beforeAll(async () => {
      s3 = await S3Server.start(home, saySilently);
      mkdirSync(join(s3.directory, "forge-data"));
      forge = await startForge({ FORGE_STORE_URL: "s3://forge-data", ...s3.environment });
    }, 120_000);

    afterAll(async () => {
      await forge?.stop();
      await s3?.process.stop();
      rmSync(home, { recursive: true, force: true });
    });

    test("is billed from when it can be stopped until it is stopped; its bill and manifest are right when the store is back", async () => {
      const worker = await servingWorker(forge, "serves");
      await s3.process.stop();
      const { job_id: jobId } = await forge.user.submit("deploy", { checkpoint_id: "ckpt" });
      await untilRetried(forge, jobId);
      expect((await forge.user.job(jobId)).status).toBe("running");
      const backMs = performance.now();
      await s3.start();
      const { result, completed_at: since } = await untilEnded(forge.user, jobId, 60_000);
      const id = String(result?.deployment_id);
      expect(await read(forge.user, id)).toMatchObject({ status: "active", created_at: since });

      await s3.process.stop();
      await waitFor("it to cost something", async () => (await read(forge.user, id)).cost_usd > 0);
      const stopped = await forge.user.call("POST", `/api/deployments/${id}/stop`);
      const livedS = (performance.now() - backMs) / 1_000;
      expect(stopped.status).toBe(202);
      const closed = await readRecord(forge.user, jobId);
      expect(closed.state).toBe("final");
      expect((closed.metrics.deployment_lifetime_days ?? 0) * DAY_S).toBeLessThan(livedS);
      await waitFor("its server to stop", () => worker.stopped.includes(id));
      const stopping = await until(forge.user, id, "served nowhere", (now) => {
        return now.replicas.length === 0;
      });
      expect(stopping.status).toBe("stopping");

      await s3.start();
      await until(forge.user, id, "stopped", ({ status }) => status === "stopped", 60_000);
      expect(await readRecord(forge.user, jobId)).toEqual(closed);
      const bills = "select from billing_records where job_id = $1";
      expect(await all(forge.ctx.pool, bills, [jobId])).toHaveLength(1);
      const { manifest } = await waitFor("its last manifest", async () => {
        const artifact = await artifactOf(forge.user, jobId);
        return artifact.manifest.status === "stopped" && artifact;
      });
      const { cost_usd: cost } = await read(forge.user, id);
      expect([cost, manifest.cost_estimate_usd]).toEqual([
        closed.total_cost_usd,
        closed.total_cost_usd,
      ]);
      const key = `${artifactPrefix("deploy", id)}${MANIFEST_FILE}`;
      expect(JSON.parse(await text(forge.ctx.store.read(key)))).toEqual(manifest);
      await worker.die();
      // proveInvariants() also compares the bill's file with the bill's row.
      await forge.proveInvariants();
    }, 180_000);
  },
);
