import { z } from "zod";

/** A time in a response: ISO 8601, UTC, milliseconds, `Z`. */
export const timestamp = z.string().meta({ format: "date-time" });

const isInCalendar = (year: number): boolean => year >= 1 && year <= 9999;

/**
 * A time in a request. Converted to UTC, because Postgres rejects offsets of 16 hours or more. The
 * year in UTC must be 1 to 9999. Postgres rejects the year 0. An offset can result in the year
 * 10000, which `toISOString` writes as `+010000`.
 */
export const givenTime = z.iso
  .datetime({ offset: true })
  .refine((text) => isInCalendar(new Date(text).getUTCFullYear()), "is not in the years 1 to 9999")
  .transform((text) => new Date(text).toISOString());
