import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import type { Forge } from "./forge";
import { usualWork, WorkerPool } from "./pipelines";
import type { Variables } from "./sdk-contract";
import { ServingWorker } from "./serving-worker";
import { TestWorker } from "./test-worker";

const A100 = { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 };

export interface Tenant {
  keys: { user: string; admin: string; stranger: string };
  variables: Variables;
}

/**
 * The environment of the SDKs' scenarios: shared workers for every job type, and a tenant for each
 * scenario.
 */
export class SdkFleet {
  private constructor(
    private readonly forge: Forge,
    private readonly crew: WorkerPool,
    private readonly serving: ServingWorker,
  ) {}

  static async start(forge: Forge): Promise<SdkFleet> {
    const shared = async (id: string, jobTypes: string[]): Promise<TestWorker> => {
      const worker = new TestWorker(
        new ApiClient(forge.stack.apiUrl, forge.stack.keys.adminKey),
        id,
      );
      await worker.register(A100, { job_types: jobTypes, tags: ["eu-1"] });
      return worker;
    };
    const types = ["generate", "audit", "distill", "train", "evaluate"];
    const crew = new WorkerPool({ ...forge, worker: (id) => shared(id, types) }, (job) =>
      String(job.payload.dataset_uri).endsWith("fail")
        ? { error: "asked to fail" }
        : usualWork(job),
    );
    await crew.start(3, "shared");
    const serving = new ServingWorker(await shared("serving", ["deploy"])).start();
    return new SdkFleet(forge, crew, serving);
  }

  async newTenant(): Promise<Tenant> {
    const { stack, admin } = this.forge;
    const { api_key } = await admin.post<{ api_key: { key: string } }>("/api/admin/users", {
      name: "a team",
    });
    const worker = new TestWorker(
      new ApiClient(stack.apiUrl, api_key.key),
      `own-${Math.random().toString(36).slice(2)}`,
    );
    await worker.register();
    return {
      keys: { user: api_key.key, admin: stack.keys.adminKey, stranger: "forge_user_nobody" },
      variables: { worker: worker.id },
    };
  }

  /** Waits until all jobs have ended, and then stops the workers. */
  async stop(): Promise<void> {
    try {
      await waitFor("every job to end", async () => {
        const sql = "select from jobs where status not in ('completed', 'failed') limit 1";
        return (await all(this.forge.ctx.pool, sql)).length === 0;
      });
    } finally {
      await this.crew.stop();
      await this.serving.die();
    }
  }
}
