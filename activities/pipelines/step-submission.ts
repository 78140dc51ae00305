import { createHash } from "node:crypto";
import { findNamed } from "../../core/artifacts/artifacts";
import { sourceIdsOf } from "../../core/artifacts/references";
import { InvalidRequest } from "../../core/errors";
import { parseSubmission, type Submission } from "../../core/jobs/payloads";
import { resolveStep } from "../../core/pipelines/definition";
import { explain, type GateFacts, judge, measure } from "../../core/pipelines/gate";
import type { StepReference } from "../../core/pipelines/references";
import { isReusable, workOf } from "../../core/pipelines/reuse";
import { ownStoreOf } from "../../platform/store/open-store";
import { findOwnArtifacts } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import type { StepRow, StepView, StepWork } from "../../services/pipelines/pipeline-steps";

/** The step can't be done, whatever is tried: its pipeline is told why. */
export class StepFault extends Error {
  override readonly name = "StepFault";
  constructor(
    readonly code: "step_invalid" | "budget_exhausted" | "nothing_to_choose",
    message: string,
  ) {
    super(message);
  }
}

export const factsOf = ({ result, metrics }: StepWork): GateFacts => ({
  result: result ?? {},
  scores: result?.scores,
  quality: result?.quality,
  metrics,
});

/** Of the steps that one chooses from, the best; undefined for a step that chooses from none. */
export function chooseStep({ choose }: StepView, needed: StepWork[]): StepView["chosen"] {
  if (!choose) return null;
  const { from, by, order, where } = choose;
  const refused: string[] = [];
  let best: StepView["chosen"] = null;
  for (const name of from) {
    const candidate = needed.find((each) => each.name === name);
    if (candidate?.status !== "completed") {
      refused.push(`${name} is ${candidate?.status ?? "gone"}`);
      continue;
    }
    const facts = factsOf(candidate);
    const verdict = where === undefined ? undefined : judge(where, facts);
    const value = measure(by, facts);
    if (where !== undefined && verdict && !verdict.passed) {
      refused.push(`${name}: ${explain(where, verdict)}`);
    } else if (value === undefined) refused.push(`${name} has no number ${by}`);
    else if (!best || (order === "highest" ? value > best.value : value < best.value)) {
      best = { step: name, by, value };
    }
  }
  if (best) return best;
  throw new StepFault("nothing_to_choose", `none can be chosen: ${refused.join("; ")}`);
}

/** The step's submission, its references resolved; checked once more, for now its values are known. */
export function resolveSubmission(
  ctx: Context,
  step: StepRow,
  needed: StepWork[],
  chosen: StepView["chosen"],
): Submission {
  let room = ctx.config.jobs.maxResultBytes;
  const read = ({ step: name, part, path }: StepReference, text: string): unknown => {
    const source = needed.find((each) => each.name === (name ?? chosen?.step));
    const whole = source?.[part];
    const value = path.reduce<unknown>(
      (at, field) =>
        typeof at === "object" && at !== null && Object.hasOwn(at, field)
          ? (at as Record<string, unknown>)[field]
          : undefined,
      whole,
    );
    if (typeof value === "string" || typeof value === "number") {
      // References are short, and what they stand for need not be.
      room -= String(value).length;
      if (room > 0) return value;
      throw new StepFault("step_invalid", "what its references stand for is too large together");
    }
    // A worker need not say where its dataset lies: it has its place.
    const isPlace = part === "result" && path.join() === "dataset_uri";
    if (isPlace && source?.artifacts_uri) return source.artifacts_uri;
    throw new StepFault("step_invalid", `${text}: step "${source?.name}" has left nothing there`);
  };
  try {
    const body = resolveStep(step, read);
    return parseSubmission(step.job_type, body, { teacher: ctx.config.jobs.defaultTeacher });
  } catch (error) {
    if (error instanceof StepFault) throw error;
    const why = error instanceof InvalidRequest ? error.message : firstIssue(error);
    throw new StepFault("step_invalid", `what the steps before have made does not fit: ${why}`);
  }
}

function firstIssue(error: unknown): string {
  const issues = (error as { issues?: { path: PropertyKey[]; message: string }[] }).issues;
  const [issue] = issues ?? [];
  if (!issue) throw error;
  return `"${issue.path.join(".")}": ${issue.message}`;
}

/** By what an earlier job would be known that has made the same; null where that can't be told. */
export async function findReuseKey(
  { pool, config }: Context,
  userId: string,
  { job_type: type }: StepView,
  { payload, params }: Submission,
): Promise<string | null> {
  if (!isReusable(type)) return null;
  const own = ownStoreOf(config.store);
  const found = await findOwnArtifacts(pool, userId, sourceIdsOf(payload, params, own));
  const work = workOf(type, payload, params, own, (id) => findNamed(found, id)?.manifest);
  return work === null ? null : createHash("sha256").update(work).digest("hex");
}
