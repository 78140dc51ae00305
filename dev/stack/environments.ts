import { existsSync } from "node:fs";

/** Defaults for a forge-server of the embedded stack. The environment overrides them. */
export function serverDefaults(publicUrl: string): NodeJS.ProcessEnv {
  const { FORGE_PUBLIC_URL, FORGE_DEFAULT_TEACHER, FORGE_DEPLOYMENT_ALLOW, FORGE_SSH_ALLOW } =
    process.env;
  return {
    // Workers set up over SSH reach the server at this URL. In the stack, such a worker runs on
    // this machine.
    FORGE_PUBLIC_URL: FORGE_PUBLIC_URL ?? publicUrl,
    // The teacher for generate jobs that set a domain but no teacher. builtin:mixed works offline.
    FORGE_DEFAULT_TEACHER: FORGE_DEFAULT_TEACHER ?? "builtin:mixed",
    // The proxy may connect to this machine, because the workers serve their models here.
    FORGE_DEPLOYMENT_ALLOW: FORGE_DEPLOYMENT_ALLOW ?? "127.0.0.0/8,::1",
    // SSH may connect to this machine, so that it can be set up as a worker.
    FORGE_SSH_ALLOW: FORGE_SSH_ALLOW ?? "+127.0.0.0/8,+::1",
    FORGE_TRAIN_NEEDS_GPU: String(existsSync("/dev/nvidia0")),
  };
}

/**
 * Returns the environment for agents. If the server's store is a bucket, leaves out the variables
 * of the store, because an agent would use them as the settings of its own bucket.
 */
export function forAgents(env: NodeJS.ProcessEnv, hasBucket: boolean): NodeJS.ProcessEnv {
  if (!hasBucket) return env;
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(S3_|SPACES_|FORGE_STORE_)/.test(name)),
  );
}
