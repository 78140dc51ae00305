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

/** Parses a submission's body and replaces aliases by field names. @throws InvalidRequest that names the field. */
export function readSubmission(ctx: Context, type: JobType, body: unknown): Submission {
  const known = (path: PropertyKey[]): string[] => [
    ...fieldsAt(submissionSchema(type), path),
    ...(path.length === 0 ? Object.keys(aliasesOf(type)) : []),
  ];
  return withHints(known, () =>
    parseSubmission(type, body, { teacher: ctx.config.jobs.defaultTeacher }),
  );
}

export function requireJobType(type: string): JobType {
  if (isJobType(type)) return type;
  const near = closest(type, [...JOB_TYPES]);
  throw new InvalidRequest(`there is no job type "${type}"; did you mean "${near}"?`, "job_type");
}
