import type { Step } from "./sdk-contract";

const ROWS = '{"question": "1 + 1?", "answer": "2"}\n'.repeat(50);

/** One request of each kind: creations, reads, changes, uploads and downloads. */
export const EACH_REQUEST: Step[] = [
  {
    call: "audit",
    options: { dataset_uri: "s3://team-data/rows.parquet", resources: { gpu: 64 } },
    keep: { job: "job_id" },
    result: { status: "pending" },
  },
  { call: "status", args: ["${job}"], result: { status: "pending" } },
  { call: "jobs.list", result: [{ job_type: "audit" }] },
  { call: "jobs.cancel", args: ["${job}"], result: { error_code: "cancelled" } },
  {
    call: "jobs.retry",
    args: ["${job}"],
    keep: { again: "job_id" },
    result: { retried_from: "${job}" },
  },
  { call: "jobs.cancel", args: ["${again}"], result: { error_code: "cancelled" } },
  {
    call: "pipelines.create",
    options: {
      steps: [
        { name: "a", job_type: "audit", payload: { dataset_uri: "s3://team-data/rows.parquet" } },
      ],
      approvals: ["a"],
    },
    keep: { pipeline: "pipeline_id" },
    result: { steps: [{ name: "a" }] },
  },
  {
    call: "pipelines.wait",
    args: ["${pipeline}"],
    options: { poll_interval: 0.1, timeout: 30, stop_at_approval: true },
    result: { status: "waiting_approval" },
  },
  {
    call: "pipelines.approve",
    args: ["${pipeline}", "a"],
    options: { approved: false, note: "no" },
    result: { steps: [{ approval: { approved: false, note: "no" } }] },
  },
  {
    call: "pipelines.wait",
    args: ["${pipeline}"],
    options: { poll_interval: 0.1, timeout: 30 },
    error: { type: "PipelineFailedError" },
  },
  { call: "pipelines.resume", args: ["${pipeline}"], result: { run: 2 } },
  { call: "pipelines.cancel", args: ["${pipeline}"], result: { pipeline_id: "<text>" } },
  {
    call: "datasets.upload",
    args: [{ $file: "rows.jsonl", text: ROWS }],
    keep: { dataset: "dataset_id" },
    result: { num_rows: 50 },
  },
  {
    call: "artifacts.download",
    args: ["${dataset}", "raw.jsonl", { $folder: "rows.down" }],
    result: { $file: ROWS },
  },
  { call: "artifacts.delete", args: ["${dataset}"], result: { deleted_at: "<time>" } },
  { call: "billing.set_budget", args: [100], result: { budget: { cap_usd: 100 } } },
  { call: "workers.drain", args: ["${worker}"], result: { draining: true } },
  { call: "workers.remove", args: ["${worker}"], result: { decommissioned: true } },
];
