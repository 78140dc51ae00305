import { z } from "zod";

/** Invisible Unicode characters that change the direction of the text after them. */
const MARKS = String.raw`\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`;
const HAS_MARK = new RegExp(`[${MARKS}]`);

/**
 * A name or a tag. Direction marks are rejected because they can make one name look like another.
 * Free text, such as notes, may contain them.
 * @param needed the text must contain at least one character of this class.
 */
export const label = (maxLength: number, needed: "visible" | "alphanumeric" = "visible") =>
  z
    .string()
    .regex(PATTERNS[needed], {
      error: ({ input }) =>
        HAS_MARK.test(String(input))
          ? "must not have characters that turn the direction of text"
          : "must not be empty",
    })
    .max(maxLength);

const PATTERNS = {
  visible: new RegExp(String.raw`^\s*[^\s${MARKS}][^${MARKS}]*$`),
  alphanumeric: new RegExp(`^[^A-Za-z0-9${MARKS}]*[A-Za-z0-9][^${MARKS}]*$`),
};

/** A list of tags, each at most 128 characters long. */
export const labels = (maxCount: number) => z.array(label(128)).max(maxCount);
