import { z } from "zod";

/** Fields of both forms of registration. */
export const workerIdField = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "letters, digits, . _ -; at most 128");

export const tagsField = z.array(z.string().max(128)).max(64).default([]);
