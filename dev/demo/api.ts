/** The interfaces in this file have the fields of API responses that the demo reads. */
export interface Step {
  name: string;
  job_type: string;
  status: string;
  job_id: string | null;
  job_status: string | null;
  progress: number | null;
  attempts: number | null;
  worker_id: string | null;
  started_at: string | null;
  completed_at: string | null;
  cost_usd: number | null;
  gate?: { condition: string; passed: boolean | null; values: Record<string, unknown> };
  approval?: { by: string | null; at: string | null; note: string | null };
  error: string | null;
}

export interface Pipeline {
  pipeline_id: string;
  status: string;
  error: string | null;
  cost_usd: number;
  created_at: string;
  completed_at: string | null;
  steps: Step[];
}

export interface Deployment {
  deployment_id: string;
  status: string;
  url: string;
  inference_url: string | null;
}

export interface BillingRecord {
  job_id: string;
  job_type: string;
  formula: string;
  state: string;
  total_cost_usd: number;
}

export interface Lineage {
  nodes: { id: string; type: string; kind?: string }[];
  edges: { from: string; to: string; relation: string }[];
}

export interface Artifact {
  artifact_id: string;
  manifest: { attempt: number; verified: boolean; pipeline?: { step: string } };
}

export interface Chat {
  choices: { message: { content: string } }[];
}
