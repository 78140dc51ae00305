import { z } from "zod";
import { DEFAULT_JOB_POLICY, type JobPolicy, jobPolicySchema } from "../../core/jobs/job-policy";
import { JOB_TYPES } from "../../core/jobs/job-types";
import { AddressPolicy } from "../net/address-policy";

export const seconds = (byDefault: number) => z.coerce.number().positive().default(byDefault);

/** Undefined where it is not set: `default` says what then holds. */
export const flag = z
  .enum(["true", "false", "1", "0"])
  .transform((value) => value === "true" || value === "1");

/** At least one. */
export const wholeNumber = (byDefault: number) =>
  z.coerce.number().int().positive().default(byDefault);

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
/** Names and values as a shell takes them. */
export const environmentJson = json.pipe(
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string().regex(/^[^\x00-\x1f]*$/)),
);

/** The parts of a comma-separated list. */
export const listOf = (given = ""): string[] =>
  given
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** Networks, comma-separated; what is none is refused by name. */
/** Networks with a + before them are allowed beside those that are without the variable. */
export function readAddressPolicy(
  given: string | undefined,
  context: z.core.$RefinementCtx<string | undefined>,
  refused?: string[],
): AddressPolicy {
  try {
    const networks = listOf(given);
    const besides = networks.filter((one) => one.startsWith("+")).map((one) => one.slice(1));
    const instead = networks.filter((one) => !one.startsWith("+"));
    return new AddressPolicy(instead, refused, besides);
  } catch (error) {
    context.issues.push({ code: "custom", message: (error as Error).message, input: given });
    return z.NEVER;
  }
}

/** The specification's rules, with what the operator says in their place. */
export function policyOf(given: JobPolicy, trainNeedsGpu: boolean): JobPolicy {
  const byDefault = trainNeedsGpu ? DEFAULT_JOB_POLICY : {};
  const rules = JOB_TYPES.map((type) => [type, { ...byDefault[type], ...given[type] }]);
  return Object.fromEntries(rules);
}
