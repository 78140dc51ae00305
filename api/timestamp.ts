import { z } from "zod";

/** A time in an answer: ISO 8601, UTC, milliseconds, `Z`. */
export const timestamp = z.string().meta({ format: "date-time" });

/** A time in a request, in UTC from here on: Postgres takes no offset of 16 hours, and has no year 0. */
export const givenTime = z.iso
  .datetime({ offset: true })
  .refine((text) => !text.startsWith("0000"), "the year 0 never was")
  .transform((text) => new Date(text).toISOString());
