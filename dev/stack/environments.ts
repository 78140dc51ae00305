import { existsSync } from "node:fs";

/** What a forge-server of this machine's is told where nobody says otherwise. */
export function serverDefaults(publicUrl: string): NodeJS.ProcessEnv {
  const { FORGE_PUBLIC_URL, FORGE_DEFAULT_TEACHER, FORGE_DEPLOYMENT_ALLOW } = process.env;
  return {
    // Its workers are on this machine.
    FORGE_PUBLIC_URL: FORGE_PUBLIC_URL ?? publicUrl,
    // One that works offline, for a generate job that names only a domain.
    FORGE_DEFAULT_TEACHER: FORGE_DEFAULT_TEACHER ?? "builtin:mixed",
    // So are the models that its workers serve.
    FORGE_DEPLOYMENT_ALLOW: FORGE_DEPLOYMENT_ALLOW ?? "127.0.0.0/8,::1",
    FORGE_TRAIN_NEEDS_GPU: String(existsSync("/dev/nvidia0")),
  };
}

/**
 * A server's environment as its agents may have it: where it keeps its store in a bucket, without the
 * credentials, which an agent would take for those of a bucket of its own.
 */
export function forAgents(env: NodeJS.ProcessEnv, hasBucket: boolean): NodeJS.ProcessEnv {
  if (!hasBucket) return env;
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(S3_|SPACES_|FORGE_STORE_)/.test(name)),
  );
}
