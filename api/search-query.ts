import { z } from "zod";

/** The query parameter `q` of a list. @param where describes the fields that are searched. */
export const searchQuery = (where: string) => ({
  q: z
    .string()
    .regex(/\S/, "must not be empty")
    .max(128)
    .optional()
    .describe(`${where}; case-insensitive, except for the id`),
});
