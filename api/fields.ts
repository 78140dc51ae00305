import { z } from "zod";

/** Types of fields in responses. */
export const nullableText = z.string().nullable();
export const nullableNumber = z.number().nullable();
