import { createHash } from "node:crypto";
import { findByEitherId } from "../../core/artifacts/artifacts";
import { sourceIdsOf } from "../../core/artifacts/source-references";
import { InvalidRequest } from "../../core/errors";
import { parseSubmission, type Submission } from "../../core/jobs/payloads";
import { resolveStep } from "../../core/pipelines/definition";
import { valueAt } from "../../core/pipelines/gate";
import type { StepReference } from "../../core/pipelines/references";
import { isReusable, reuseKeyOf } from "../../core/pipelines/reuse";
import { ownStoreOf } from "../../platform/store/open-store";
import { findOwnArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import type { StepResult, StepRow, StepView } from "../../services/pipelines/pipeline-steps";
import { StepFault } from "./step-fault";

/**
 * Replaces the step's references by values of earlier steps, and validates the submission again
 * with these values.
 */
export function resolveSubmission(
  ctx: Context,
  step: StepRow,
  needed: StepResult[],
  chosen: StepView["chosen"],
): Submission {
  let remaining = ctx.config.jobs.maxResultBytes;
  const read = ({ step: name, part, path }: StepReference, text: string): unknown => {
    const source = needed.find((each) => each.name === (name ?? chosen?.step));
    const value = valueAt(source?.[part], path);
    if (typeof value === "string" || typeof value === "number") {
      // A short reference may have a long value, so the total size of the values is limited.
      remaining -= String(value).length;
      if (remaining > 0) return value;
      throw new StepFault("step_invalid", "the values of its references are too large together");
    }
    // Workers need not report a dataset's URI: the artifact's location in the store is known.
    const isDatasetUri = part === "result" && path.join() === "dataset_uri";
    if (isDatasetUri && source?.artifacts_uri) return source.artifacts_uri;
    throw new StepFault("step_invalid", `${text}: step "${source?.name}" has no such value`);
  };
  try {
    const defaults = { teacher: ctx.config.jobs.defaultTeacher };
    return parseSubmission(step.job_type, resolveStep(step, read), defaults);
  } catch (error) {
    if (error instanceof StepFault) throw error;
    const why = error instanceof InvalidRequest ? error.message : firstIssue(error);
    throw new StepFault("step_invalid", `invalid with the values of earlier steps: ${why}`);
  }
}

function firstIssue(error: unknown): string {
  const issues = (error as { issues?: { path: PropertyKey[]; message: string }[] }).issues;
  const [issue] = issues ?? [];
  if (!issue) throw error;
  return `"${issue.path.join(".")}": ${issue.message}`;
}

/** Hash that identifies jobs with the same work; null if the step's result can't be reused. */
export async function findReuseKey(
  { pool, config }: Context,
  userId: string,
  { job_type: type }: StepView,
  { payload, params }: Submission,
): Promise<string | null> {
  if (!isReusable(type)) return null;
  const own = ownStoreOf(config.store);
  const found = await findOwnArtifacts(pool, userId, sourceIdsOf(payload, params, own));
  const work = reuseKeyOf(type, payload, params, own, (id) => findByEitherId(found, id)?.manifest);
  return work === null ? null : createHash("sha256").update(work).digest("hex");
}
