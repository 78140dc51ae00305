import { closest } from "fastest-levenshtein";
import { InvalidRequest } from "../../core/errors";
import { isJobType, JOB_TYPES, type JobType } from "../../core/jobs/job-types";
import {
  aliasesOf,
  parseSubmission,
  type Submission,
  submissionSchema,
} from "../../core/jobs/payloads";
import { fieldsAt, withHints } from "../../platform/http/validation";
import type { Context } from "../../services/context";

/** Parses a submission's body; replaces aliases. @throws InvalidRequest that names the field. */
export function readSubmission(ctx: Context, type: JobType, body: unknown): Submission {
  const { defaultTeacher: teacher } = ctx.config.jobs;
  return withHints(fieldsOf(type), () => parseSubmission(type, body, { teacher }));
}

/**
 * The known field names at a path in a submission of this type, for hints about misspelled fields.
 * Includes the aliases at the top level.
 */
export const fieldsOf =
  (type: JobType) =>
  (path: PropertyKey[]): string[] => [
    ...fieldsAt(submissionSchema(type), path),
    ...(path.length === 0 ? Object.keys(aliasesOf(type)) : []),
  ];

export function requireJobType(type: string): JobType {
  if (isJobType(type)) return type;
  const near = closest(type, [...JOB_TYPES]);
  throw new InvalidRequest(`there is no job type "${type}"; did you mean "${near}"?`, "job_type");
}
