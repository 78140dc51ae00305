import { z } from "zod";

/** A calendar month in UTC. */
export const periodQuery = {
  period: z
    .string()
    .regex(/^[12][0-9]{3}-(0[1-9]|1[0-2])$/, "must be YYYY-MM")
    .optional()
    .describe("YYYY-MM, UTC; by default this month"),
};
