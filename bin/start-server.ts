import { migrate } from "../platform/postgres/migrate";
import type { Service } from "../platform/service";
import { isStoreAway } from "../platform/store/object-store";
import type { Context } from "../services/context";

/** Brings the schema up to date, checks the store, and starts a server's parts. */
export async function startServer(ctx: Context, service: Service): Promise<void> {
  await migrate(ctx.config.database.url);
  await requireStore(ctx);
  warnOfMovingRef(ctx);
  await service.start();
}

/** A store that is set up wrong stops the start; one that is away comes back. */
async function requireStore({ store, logger }: Context): Promise<void> {
  try {
    await store.check();
  } catch (error) {
    if (!isStoreAway(error)) throw error;
    logger.warn({ err: String(error) }, "the artifact store is away");
  }
}

/** A branch or tag can be moved, and workers set up over SSH run what it names then. */
function warnOfMovingRef({ config, logger }: Context): void {
  const { repository, repositoryRef } = config.bootstrap;
  if (repository === undefined || /^[0-9a-f]{40}$/.test(repositoryRef)) return;
  logger.warn(
    { variable: "FORGE_COMPUTE_REF", value: repositoryRef },
    "workers set up over SSH run what a branch or tag names; a full commit pins it",
  );
}
