import { z } from "zod";

/** Characters that turn the direction of the text after them around, and show nothing themselves. */
const MARKS = String.raw`\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`;
const HAS_MARK = new RegExp(`[${MARKS}]`);

/**
 * A name or a tag. It stands in lists and in sentences beside other people's: with a direction mark it could show
 * as another one's name. Texts of their own, such as notes, may have such marks.
 *
 * @param needed the class of characters of which one must be there; by default all that can be seen.
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

/** Tags. */
export const labels = (maxCount: number) => z.array(label(128)).max(maxCount);
