import { readFileSync } from "node:fs";
import { z } from "zod";

/** Reads the file that a variable names. @throws Error with the path and the reason. */
export function readNamedFile(path: string): Buffer {
  try {
    const content = readFileSync(path);
    if (content.length > 0) return content;
  } catch (error) {
    throw new Error(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
  throw new Error(`${path} is empty`);
}

/** A variable that names a file, such as a certificate. The server reads it once, at its start. */
export const namedFile = z
  .string()
  .optional()
  .transform((path, context) => {
    if (path === undefined) return undefined;
    try {
      return readNamedFile(path);
    } catch (error) {
      context.addIssue((error as Error).message);
      return z.NEVER;
    }
  });
