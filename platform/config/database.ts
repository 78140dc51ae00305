import { z } from "zod";
import { readNamedFile } from "./files";
import { seconds, wholeNumber } from "./values";

const FILES = ["sslrootcert", "sslcert", "sslkey"] as const;
const MODES = ["disable", "no-verify", "prefer", "require", "verify-ca", "verify-full"];

/**
 * Checks the TLS parameters of a connection URL. Returns an error message, or undefined if the
 * parameters are valid. The message does not quote the URL, because the URL may contain a password.
 */
function problemOf(text: string): string | undefined {
  // A text that starts with a slash is the directory of a Unix socket. Its connections have no TLS.
  if (text.startsWith("/")) return undefined;
  const parameters = new URLSearchParams(text.split("?", 2)[1]);
  const mode = parameters.get("sslmode");
  if (mode !== null && !MODES.includes(mode)) return `sslmode must be one of ${MODES.join(", ")}`;
  const uses = (name: string): boolean => parameters.has(name);
  if (mode === "disable" && FILES.some(uses)) return "sslmode=disable, but certificates are set";
  if (uses("sslcert") && !uses("sslkey")) return "sslcert needs sslkey";
  if (uses("sslkey") && !uses("sslcert")) return "sslkey needs sslcert";
  for (const name of FILES) {
    const path = parameters.get(name);
    if (path === null) continue;
    try {
      readNamedFile(path);
    } catch (error) {
      return `${name}: ${(error as Error).message}`;
    }
  }
  return undefined;
}

export const DATABASE_VARIABLES = {
  FORGE_DATABASE_URL: z
    .string()
    .default("postgres://postgres@127.0.0.1:5432/forge")
    .superRefine((text, context) => {
      const problem = problemOf(text);
      if (problem) context.addIssue({ code: "custom", message: problem, input: undefined });
    })
    .describe(
      "Postgres connection URL; with TLS: ?sslmode=verify-full&sslrootcert=FILE, " +
        "and sslcert=FILE&sslkey=FILE for a client certificate",
    ),
  FORGE_DATABASE_POOL: wholeNumber(20).describe("most database connections of one process"),
  FORGE_DATABASE_TIMEOUT_S: seconds(4).describe("longest time of a statement, in seconds"),
};

type Variables = z.output<z.ZodObject<typeof DATABASE_VARIABLES>>;

export const databaseOf = (env: Variables) => ({
  url: env.FORGE_DATABASE_URL,
  poolSize: env.FORGE_DATABASE_POOL,
  timeoutMs: env.FORGE_DATABASE_TIMEOUT_S * 1000,
});
