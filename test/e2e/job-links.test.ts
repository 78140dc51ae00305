import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { startPipeline, untilPipeline } from "../support/pipelines";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_TEMPORAL_UI_URL: "https://temporal.test/ui/" });
});

afterAll(async () => {
  await forge?.stop();
});

interface LinkedJob {
  job_id: string;
  workflow_id: string;
  workflow_url: string | null;
  cancelled_by: string | null;
  error_code: string | null;
}

const read = (jobId: string): Promise<LinkedJob> => forge.user.get(`/api/jobs/${jobId}`);

test("a job shows its workflow id, and a link to it", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await read(job_id);
  expect(job).toMatchObject({
    workflow_id: `job:${job_id}`,
    workflow_url: `https://temporal.test/ui/namespaces/default/workflows/job%3A${job_id}`,
    cancelled_by: null,
  });
  const { jobs } = await forge.user.get<{ jobs: LinkedJob[] }>("/api/jobs");
  expect(jobs[0]?.workflow_url).toBe(job.workflow_url);
  await forge.user.call("POST", `/api/jobs/${job_id}/cancel`);
});

test("a cancelled job shows which key cancelled it first", async () => {
  const named = async (name: string): Promise<ApiClient> => {
    const { key } = await forge.user.post<{ key: string }>("/api/auth/api-keys", { name });
    return new ApiClient(forge.stack.apiUrl, key);
  };
  const [alice, bob] = [await named("alice"), await named("bob")];
  const worker = await forge.worker("stubborn");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await alice.call("POST", `/api/jobs/${job_id}/cancel`);
  await bob.call("POST", `/api/jobs/${job_id}/cancel`);
  expect(await read(job_id)).toMatchObject({ cancelled_by: "alice" });
  await worker.fail(job);
  await untilEnded(forge.user, job_id);
  expect(await read(job_id)).toMatchObject({ cancelled_by: "alice", error_code: "cancelled" });
});

test("the jobs of a cancelled pipeline show it, too", async () => {
  const payload = { ...AUDIT, resources: { gpu: 8 } };
  const steps = [{ name: "audit", job_type: "audit", payload }];
  const id = await startPipeline(forge.user, { steps });
  const jobId = await waitFor("its job", async () => {
    const page = await forge.user.get<{ jobs: LinkedJob[] }>(`/api/jobs?pipeline_id=${id}`);
    return page.jobs[0]?.job_id;
  });
  await forge.user.call("POST", `/api/pipelines/${id}/cancel`);
  await untilPipeline(forge.user, id);
  const { key_name: name } = await forge.user.get<{ key_name: string }>("/api/auth/ping");
  expect(await read(jobId)).toMatchObject({ cancelled_by: name, error_code: "cancelled" });
});
