import { readNamedFile } from "./files";

/** Variables that hold a secret. `<NAME>_FILE` may name a file that holds the value instead. */
export const SECRET_VARIABLES: ReadonlySet<string> = new Set([
  "FORGE_DATABASE_URL",
  "TEMPORAL_API_KEY",
  "S3_ACCESS_KEY_ID",
  "S3_SECRET_ACCESS_KEY",
  "SPACES_KEY",
  "SPACES_SECRET",
  "FORGE_STRIPE_API_KEY",
  "FORGE_BOOTSTRAP_ENV",
]);

export const fileVariableOf = (name: string): string => `${name}_FILE`;

interface ReadSecrets {
  env: NodeJS.ProcessEnv;
  /** One line per bad variable. A line names the variable and the path, never the value. */
  errors: string[];
}

/** Replaces each `<NAME>_FILE` with `<NAME>`, set to the content of that file. */
export function readSecretFiles(given: NodeJS.ProcessEnv): ReadSecrets {
  const env = { ...given };
  const errors: string[] = [];
  for (const name of SECRET_VARIABLES) {
    const fileVariable = fileVariableOf(name);
    const path = env[fileVariable];
    if (path === undefined) continue;
    delete env[fileVariable];
    if (given[name] !== undefined) {
      errors.push(`${name} and ${fileVariable} are both set; set one of them`);
      continue;
    }
    try {
      const value = readNamedFile(path)
        .toString("utf8")
        .replace(/\r?\n$/, "");
      if (value === "") throw new Error(`${path} is empty`);
      env[name] = value;
    } catch (error) {
      errors.push(`${fileVariable}: ${(error as Error).message}`);
    }
  }
  return { env, errors };
}
