/**
 * Runs one pipeline for each path that the workflow can take, on a real Temporal server.
 * RECORD_HISTORIES=1 stores the histories.
 */

import { DefaultLogger, Runtime } from "@temporalio/worker";
import { pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { inspectHistory } from "../support/histories";
import {
  BYO_DATA,
  type Pipeline,
  startPipeline,
  URI,
  untilPipeline,
  usualWork,
  WorkerPool,
} from "../support/pipelines";

let forge: Forge;
let crew: WorkerPool;

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger("ERROR") });
  forge = await startForge();
  crew = await new WorkerPool(forge, usualWork, true).start(2);
});

afterEach(() => {
  crew.work = usualWork;
});

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

/** A pipeline of one step, which is enough for most branches of the workflow's code. */
const SHORT = {
  ...BYO_DATA,
  params: { audit: { dataset_uri: URI } },
  skip: ["distill", "train", "evaluate", "deploy"],
};

const api = (): Forge["user"] => forge.user;

/** Each function starts a pipeline and takes it along one path. @returns the pipeline's id. */
const ways: Record<string, () => Promise<string>> = {
  "pipeline-completed": async () => await startPipeline(api(), BYO_DATA),
  "pipeline-gate": async () =>
    await startPipeline(api(), {
      ...BYO_DATA,
      gates: [{ step: "evaluate", condition: "scores.overall > 0.95" }],
    }),
  "pipeline-approval": async () => {
    const id = await startPipeline(api(), { ...SHORT, approvals: ["audit"] });
    await untilPipeline(api(), id, ["waiting_approval"]);
    await api().post(`/api/pipelines/${id}/approve`, {});
    return id;
  },
  "pipeline-rejected": async () => {
    const id = await startPipeline(api(), { ...SHORT, approvals: ["audit"] });
    await untilPipeline(api(), id, ["waiting_approval"]);
    await api().post(`/api/pipelines/${id}/approve`, { approved: false });
    return id;
  },
  "pipeline-resume": async () => {
    crew.work = (job) => (job.job_type === "train" ? { error: "no" } : usualWork(job));
    const id = await startPipeline(api(), BYO_DATA);
    await untilPipeline(api(), id);
    crew.work = usualWork;
    await api().post(`/api/pipelines/${id}/resume`, {});
    return id;
  },
  "pipeline-rerun": async () => {
    const id = await startPipeline(api(), BYO_DATA);
    await untilPipeline(api(), id);
    await api().post(`/api/pipelines/${id}/resume`, { from: "evaluate" });
    return id;
  },
  "pipeline-cancel": async () => {
    const needs = { ...BYO_DATA.params.train, resources: { gpu_type: "B200" } };
    const id = await startPipeline(api(), {
      ...BYO_DATA,
      params: { ...BYO_DATA.params, train: needs },
    });
    await waitFor("train to wait for its worker", async () => {
      const { steps } = await api().get<Pipeline>(`/api/pipelines/${id}`);
      return steps.some(({ name, job_status }) => name === "train" && job_status === "pending");
    });
    await api().post(`/api/pipelines/${id}/cancel`, {});
    return id;
  },
  "pipeline-sweep": async () =>
    await startPipeline(api(), { ...BYO_DATA, sweep: [{ epochs: 1 }, { epochs: 2 }] }),
  "pipeline-reuse": async () => {
    const body = {
      steps: [
        { name: "make", job_type: "generate", payload: { domain: "law", num_samples: 5 } },
        {
          name: "distill",
          job_type: "distill",
          payload: { dataset_id: "${steps.make.result.dataset_id}", teacher: "t" },
        },
      ],
      reuse: true,
    };
    await untilPipeline(api(), await startPipeline(api(), body));
    return await startPipeline(api(), body);
  },
};

const ENDS: Record<string, string> = {
  "pipeline-gate": "failed",
  "pipeline-rejected": "failed",
  "pipeline-cancel": "cancelled",
};

test.each(Object.entries(ways))("%s: a small history, free of payloads", async (name, go) => {
  const id = await go();
  const over = await untilPipeline(api(), id);
  expect(over.status).toBe(ENDS[name] ?? "completed");
  const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  await handle.result().catch(() => undefined);
  const history = await inspectHistory(name, handle);
  expect(history.match(/"eventId"/g)?.length).toBeLessThan(25 * over.steps.length + 25);
  expect(history).not.toContain("secret-place");
  expect(history).not.toContain("gpu_hours");
});
