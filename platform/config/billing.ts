import { z } from "zod";
import { OUTCOMES, type Outcome } from "../../core/jobs/states";

/**
 * The address of Stripe's API or of a proxy: a protocol, a host and a port, because the Stripe
 * library accepts nothing else. The library sends the Stripe key to this host, so the address must
 * not contain an `@`, behind which another host could be hidden.
 */
const baseUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => /^https?:\/\/[^/?#@]+\/?$/.test(url), "must be a host, without a path");

const UNBILLED_BY_DEFAULT = OUTCOMES.filter((outcome) => outcome !== "completed");

/** What is billed, and where usage is exported. */
export const BILLING_VARIABLES = {
  FORGE_BILL_OUTCOMES: z
    .string()
    .default("")
    .transform(readOutcomes)
    .describe(
      `outcomes of attempts that are billed in addition to completed, comma-separated: ${UNBILLED_BY_DEFAULT.join(", ")}`,
    ),
  FORGE_BILLING_EXPORT: z
    .enum(["none", "csv", "json", "stripe"])
    .default("none")
    .describe("where billed usage is exported: none, csv or json files in the store, or stripe"),
  FORGE_BILLING_EXPORT_INTERVAL_S: z.coerce
    .number()
    .positive()
    .default(60)
    .describe("how often new lines are exported, in seconds"),
  FORGE_STRIPE_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "must be a key, without spaces")
    .optional()
    .describe("Stripe key, secret or restricted, that may write meter events"),
  FORGE_STRIPE_METER_EVENT: z
    .string()
    .min(1)
    .max(100)
    .default("forge_usage")
    .describe("event name of the Stripe meter"),
  FORGE_STRIPE_API_URL: baseUrl
    .default("https://api.stripe.com")
    .describe("address of Stripe's API, or of a proxy"),
};

type Variables = z.output<z.ZodObject<typeof BILLING_VARIABLES>>;

export interface StripeSettings {
  apiKey: string;
  meterEvent: string;
  apiUrl: string;
}

export interface BillingExportConfig {
  intervalS: number;
  to: { name: "none" | "csv" | "json" } | ({ name: "stripe" } & StripeSettings);
}

export function billingExportOf(
  env: Variables,
  context: z.core.$RefinementCtx,
): BillingExportConfig {
  const name = env.FORGE_BILLING_EXPORT;
  const intervalS = env.FORGE_BILLING_EXPORT_INTERVAL_S;
  if (name !== "stripe") return { intervalS, to: { name } };
  const apiKey = env.FORGE_STRIPE_API_KEY;
  if (apiKey === undefined) {
    context.issues.push({
      code: "custom",
      path: ["FORGE_STRIPE_API_KEY"],
      message: "FORGE_BILLING_EXPORT=stripe needs it",
      input: undefined,
    });
    return z.NEVER;
  }
  const { FORGE_STRIPE_METER_EVENT: meterEvent, FORGE_STRIPE_API_URL: apiUrl } = env;
  return { intervalS, to: { name, apiKey, meterEvent, apiUrl } };
}

function readOutcomes(given: string, context: z.RefinementCtx): Set<Outcome> {
  const names = given.split(",").map((name) => name.trim());
  const outcomes = new Set<Outcome>();
  for (const name of names.filter((one) => one !== "")) {
    const outcome = UNBILLED_BY_DEFAULT.find((known) => known === name);
    if (outcome) outcomes.add(outcome);
    else {
      const message = `"${name}" is not one of ${UNBILLED_BY_DEFAULT.join(", ")}`;
      context.addIssue({ code: "custom", message });
    }
  }
  return outcomes;
}
