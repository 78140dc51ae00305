import { ARTIFACT_FORMS, findByEitherId } from "../../core/artifacts/artifacts";
import { checkDatasetUri } from "../../core/artifacts/dataset-uri";
import { NotFound } from "../../core/errors";
import type { JobType } from "../../core/jobs/job-types";
import type { Submission } from "../../core/jobs/payloads";
import { requirementGroupOf, requirementsOf } from "../../core/jobs/requirements";
import { newId } from "../../platform/ids";
import { ownStoreOf } from "../../platform/store/open-store";
import { findOwnArtifacts } from "../artifacts/artifacts";
import type { Context } from "../context";
import type { JobWarning, UnpricedJob } from "./jobs";

/** A job requested by an API call or by a step of a pipeline. */
interface JobRequest {
  type: JobType;
  submission: Submission;
  userId: string;
  createdBy: string;
  requestId: string;
}

/**
 * Builds a job with a new id, without its price. The caller may override fields before it inserts
 * the job.
 */
export function newJob({ config }: Context, request: JobRequest): UnpricedJob {
  const { type, submission, userId } = request;
  const { policy, timeoutS } = config.jobs;
  const requirements = requirementsOf(type, submission.resources, policy, submission.payload);
  const form = ARTIFACT_FORMS[type];
  return {
    job_id: newId("job"),
    user_id: userId,
    created_by: request.createdBy,
    job_type: type,
    payload: submission.payload,
    resources: submission.resources,
    params: submission.params,
    tags: submission.tags,
    notes: submission.notes ?? null,
    warnings: [],
    priority: submission.priority,
    timeout_s: submission.timeout_s ?? policy[type]?.timeout_s ?? timeoutS,
    max_attempts: submission.max_attempts,
    req_gpu_count: requirements.gpuCount,
    req_gpu_tokens: requirements.gpuTokens,
    req_memory_gb: requirements.memoryGb,
    req_tags: requirements.tags,
    request_id: request.requestId,
    retried_from: null,
    pipeline_id: null,
    pipeline_step: null,
    pipeline_run: null,
    reuse_key: null,
    expected_cost_usd: null,
    requirementGroup: requirementGroupOf(userId, requirements),
    outputIds: { [form.idField]: newId(form.idPrefix) },
    startAfterS: null,
  };
}

/** Fields of a payload that name an artifact, with the noun that error messages use. */
const REFERENCES = { dataset_id: "dataset", checkpoint_id: "checkpoint" } as const;

/**
 * Checks the artifacts that a payload names.
 *
 * @returns a warning for each unknown id. A worker may know ids that the registry doesn't.
 * @throws InvalidRequest if the form of `dataset_uri` is unknown.
 * @throws NotFound for an unknown id if `strictReferences` is set.
 */
export async function checkReferences(
  ctx: Context,
  userId: string,
  payload: Record<string, unknown>,
): Promise<JobWarning[]> {
  const { dataset_uri: uri } = payload;
  if (typeof uri === "string") checkDatasetUri(uri, ownStoreOf(ctx.config.store).artifactsRoot);
  const named = Object.entries(REFERENCES).flatMap(([param, thing]) => {
    const id = payload[param];
    return typeof id === "string" ? [{ param, thing, id }] : [];
  });
  if (named.length === 0) return [];
  const ids = named.map(({ id }) => id);
  const artifacts = await findOwnArtifacts(ctx.pool, userId, ids);
  const unresolved = named.filter(({ id }) => !findByEitherId(artifacts, id));
  const [first] = unresolved;
  if (first && ctx.config.jobs.strictReferences) {
    throw new NotFound(first.thing, first.id, first.param);
  }
  return unresolved.map(({ param, id }) => ({
    code: "unresolved_reference",
    param,
    message: `"${id}" is not among your artifacts; it is passed to the worker unchanged`,
  }));
}
