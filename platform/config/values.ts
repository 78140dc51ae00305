import { z } from "zod";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { DEFAULT_JOB_POLICY, type JobPolicy, jobPolicySchema } from "../../core/jobs/type-policy";
import { AddressPolicy } from "../net/address-policy";

export const seconds = (byDefault: number) => z.coerce.number().positive().default(byDefault);

/** true, false, 1 or 0. Add `.default()` or `.optional()`. */
export const flag = z
  .enum(["true", "false", "1", "0"])
  .transform((value) => value === "true" || value === "1");

/** A whole number of at least 1. */
export const wholeNumber = (byDefault: number) =>
  z.coerce.number().int().positive().default(byDefault);

/** A whole number of at least `least` and, if given, at most `most`. */
export const wholeNumberFrom = (least: number, byDefault: number, most?: number) => {
  const number = z.coerce.number().int().min(least);
  return (most === undefined ? number : number.max(most)).default(byDefault);
};

const json = z
  .string()
  .default("{}")
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue("is not JSON");
      return z.NEVER;
    }
  });
export const policyJson = json.pipe(jobPolicySchema);
/**
 * Environment variables. Values may not contain control characters such as line breaks, because a
 * shell reads the variables from a file with one per line.
 */
export const environmentJson = json.pipe(
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression refuses them
  z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string().regex(/^[^\x00-\x1f]*$/)),
);

/** The items of a comma-separated list. */
export const listOf = (given = ""): string[] =>
  given
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/**
 * Parses comma-separated networks. Networks with a leading + are allowed in addition to the
 * default. Networks without it replace the default.
 */
export function readAddressPolicy(
  given: string | undefined,
  context: z.core.$RefinementCtx<string | undefined>,
  refused?: string[],
): AddressPolicy {
  try {
    const networks = listOf(given);
    const additional = networks.filter((one) => one.startsWith("+")).map((one) => one.slice(1));
    const allowList = networks.filter((one) => !one.startsWith("+"));
    return new AddressPolicy(allowList, refused, additional);
  } catch (error) {
    context.issues.push({ code: "custom", message: (error as Error).message, input: given });
    return z.NEVER;
  }
}

/**
 * The requirements of each job type: those that the type declares, overridden by the operator's
 * settings. Only the job type `train` declares requirements. If `trainNeedsGpu` is false, they are
 * left out.
 */
export function policyOf(given: JobPolicy, trainNeedsGpu: boolean): JobPolicy {
  const byDefault = trainNeedsGpu ? DEFAULT_JOB_POLICY : {};
  const rules = JOB_TYPES.map((type) => [type, { ...byDefault[type], ...given[type] }]);
  return Object.fromEntries(rules);
}
