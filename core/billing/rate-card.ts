import { z } from "zod";

/** A price in USD, as decimal text. Prices are never converted to floats. */
const price = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a price in USD like "1.25"')
  .describe("USD, as decimal text");

const gpuHour = z
  .record(
    z.string().regex(/^[a-z0-9]{1,64}$/, "must be one lower-case word of a GPU's name"),
    price,
  )
  .refine((prices) => prices.default !== undefined, '"default" is missing: any other GPU\'s price')
  .meta({ required: ["default"] })
  .describe(
    "price per GPU hour. A key is a word of the GPU's name; `default` is for all other GPUs",
  );

/** Prices by output: tokens, rows, samples, and GPU hours of training (spec.md 2.5, table 1). */
const workPrices = z.strictObject({
  basis: z.literal("work"),
  gpuHour,
  generationPer1mTokens: price,
  distillPer1mTokens: price.optional().describe("by default the price of generation"),
  auditPer1kRows: price,
  evalPer100Samples: price,
  deployPerMonth: price,
});

/** Prices by consumption: GPU time, tokens and storage of any job (spec.md 2.5, table 2). */
const meteredPrices = z.strictObject({
  basis: z.literal("metered"),
  gpuHour,
  inputPer1mTokens: price,
  outputPer1mTokens: price,
  storagePerGbMonth: price,
  deployPerMonth: price,
});

export const pricesSchema = z.discriminatedUnion("basis", [workPrices, meteredPrices]);
export type Prices = z.infer<typeof pricesSchema>;

type GpuHourPrices = { default: string } & Record<string, string>;

interface CardName {
  name: string;
  /** Absent on the cards of old jobs. These cards are version 1. */
  version?: number;
}

export interface WorkCard extends CardName, Omit<z.infer<typeof workPrices>, "basis" | "gpuHour"> {
  /** Absent on the cards of old jobs. */
  basis?: "work";
  gpuHour: GpuHourPrices;
}

export interface MeteredCard extends CardName, Omit<z.infer<typeof meteredPrices>, "gpuHour"> {
  gpuHour: GpuHourPrices;
}

/** Prices by name and version. A job keeps the card that was in force when it was submitted. */
export type RateCard = WorkCard | MeteredCard;

/** Prices of spec.md 2.5, GPU prices of contract.md. Migration 0013 inserts the same prices. */
export const DEFAULT_RATE_CARD: WorkCard = {
  name: "default",
  version: 1,
  basis: "work",
  gpuHour: { a100: "1.25", default: "2.50" },
  generationPer1mTokens: "0.30",
  auditPer1kRows: "0.20",
  evalPer100Samples: "0.10",
  deployPerMonth: "2",
};

/** Prices of spec.md 2.5, table 2. The table has no deployment fee. */
export const METERED_RATE_CARD: MeteredCard = {
  name: "metered",
  version: 1,
  basis: "metered",
  gpuHour: { default: "2.50" },
  inputPer1mTokens: "10.00",
  outputPer1mTokens: "30.00",
  storagePerGbMonth: "0.02",
  deployPerMonth: "0",
};

/** The price of one GPU hour. `tokens`: the lower-case words of the GPU's name. */
export function gpuHourPrice({ gpuHour }: RateCard, tokens: readonly string[]): string {
  // The longest (most specific) word wins. Sorted, because JSON order is not stable.
  const known = Object.keys(gpuHour)
    .filter((word) => word !== "default" && tokens.includes(word))
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))[0];
  return (known === undefined ? undefined : gpuHour[known]) ?? gpuHour.default;
}
