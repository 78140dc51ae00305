import { z } from "zod";

/** What a list may be searched for. @param where the places that are searched. */
export const searchQuery = (where: string) => ({
  q: z
    .string()
    .regex(/\S/, "must not be empty")
    .max(128)
    .optional()
    .describe(`${where}; regardless of case, but for the id`),
});
