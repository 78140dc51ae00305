import { z } from "zod";

/** A time in an answer: ISO 8601, UTC, milliseconds, `Z`. */
export const timestamp = z.string().meta({ format: "date-time" });
