import type { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import type { Forge } from "./forge";
import { untilEnded } from "./jobs";
import { ServingWorker } from "./serving-worker";

export interface Deployment {
  deployment_id: string;
  status: string;
  job_id: string;
  url: string;
  inference_url: string | null;
  scaling: { min_replicas: number; max_replicas: number };
  replicas: { worker_id: string; state: string; healthy: boolean }[];
  placements: {
    placement: number;
    job_id: string;
    worker_id: string | null;
    state: string;
    outcome: string | null;
  }[];
  trouble: string | null;
  created_at: string;
  stop_requested_at: string | null;
  stopped_at: string | null;
  cost_usd: number;
}

const CHECKPOINT = { checkpoint_id: "ckpt" };

/** The serving workers of a test file, which end together. */
export class ServingWorkers {
  readonly all: ServingWorker[] = [];

  async start(forge: Forge, id: string): Promise<ServingWorker> {
    const worker = await servingWorker(forge, id);
    this.all.push(worker);
    return worker;
  }

  async end(): Promise<void> {
    await Promise.all(this.all.splice(0).map((worker) => worker.die()));
  }
}

export async function servingWorker(forge: Forge, id: string): Promise<ServingWorker> {
  return new ServingWorker(await forge.worker(id)).start();
}

/** Submits a deploy job and waits until the deployment serves. */
export async function deploy(api: ApiClient, more: object = {}): Promise<Deployment> {
  const { job_id } = await api.submit("deploy", { ...CHECKPOINT, ...more });
  const job = await untilEnded(api, job_id);
  if (job.status !== "completed") throw new Error(`${job_id}: ${job.error}`);
  return await read(api, String(job.result?.deployment_id));
}

export const read = async (api: ApiClient, id: string): Promise<Deployment> =>
  await api.get<Deployment>(`/api/deployments/${id}`);

/** Waits until a deployment satisfies a condition. */
export async function until(
  api: ApiClient,
  id: string,
  what: string,
  probe: (deployment: Deployment) => boolean,
  timeoutMs = 30_000,
): Promise<Deployment> {
  let last: Deployment | undefined;
  return await waitFor(
    `${id} to be ${what}`,
    async () => {
      last = await read(api, id);
      return probe(last) && last;
    },
    { timeoutMs },
  ).catch((error: Error) => {
    throw new Error(`${error.message}; it was ${JSON.stringify(last, null, 1)}`);
  });
}

export const serving = ({ replicas }: Deployment): string[] =>
  replicas.filter(({ state }) => state === "serving").map(({ worker_id: id }) => id);

/** Stops a deployment and waits until all its servers have stopped. */
export async function stop(api: ApiClient, id: string): Promise<Deployment> {
  await api.post(`/api/deployments/${id}/stop`, {});
  return await until(api, id, "stopped", ({ status }) => status === "stopped");
}

/** Stops all active deployments at once. */
export async function stopAll(api: ApiClient): Promise<void> {
  const { deployments } = await api.get<{ deployments: Deployment[] }>(
    "/api/deployments?status=active&limit=200",
  );
  await Promise.all(deployments.map(({ deployment_id: id }) => stop(api, id)));
}
