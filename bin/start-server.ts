import { migrate } from "../platform/postgres/migrate";
import type { Service } from "../platform/service";
import { isStoreUnavailable } from "../platform/store/object-store";
import type { Context } from "../services/context";

/** Migrates the schema, checks the store, and starts a server's components. */
export async function startServer(ctx: Context, service: Service): Promise<void> {
  await migrate(ctx.config.database.url);
  await requireStore(ctx);
  warnOfMovingRef(ctx);
  await service.start();
}

/** Throws if the store is misconfigured. If the store is only unavailable, logs a warning. */
async function requireStore({ store, logger }: Context): Promise<void> {
  try {
    await store.check();
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error;
    logger.warn({ err: String(error) }, "artifact store unavailable");
  }
}

/**
 * Workers that are set up over SSH can install their code from a repository. Warns if this code is
 * not pinned to a commit: a branch or tag can be moved, and workers then run different code.
 */
function warnOfMovingRef({ config, logger }: Context): void {
  const { repository, repositoryRef } = config.bootstrap;
  if (repository === undefined || /^[0-9a-f]{40}$/.test(repositoryRef)) return;
  logger.warn(
    { variable: "FORGE_COMPUTE_REF", value: repositoryRef },
    "workers set up over SSH are not pinned to a commit; set a full commit hash to pin them",
  );
}
