#!/usr/bin/env -S node --v8-pool-size=1 --min-semi-space-size=8 --max-semi-space-size=8 --heap-growing-percent=60
// These V8 options keep garbage collection from delaying requests on a machine with few cores.
// Pool size: by default, V8 marks live objects with four threads, which compete with the main
// thread for 200 ms at a time. One thread leaves the other cores to the main thread.
// Semi-space size: more space for new objects makes garbage collection less frequent.
// Heap growth: the space for old objects grows by 60 % before it is collected again.
import "./private-files";
import { renameSync, writeFileSync } from "node:fs";
import { Command, Option } from "commander";
import { SCOPES, type Scope } from "../core/accounts/permissions";
import { describeVariables, loadConfig } from "../platform/config/config";
import { createLogger } from "../platform/logger";
import { migrate } from "../platform/postgres/migrate";
import { grantServerRights } from "../platform/postgres/server-rights";
import { transaction } from "../platform/postgres/transaction";
import { recordAudit } from "../services/accounts/audit";
import { createKey } from "../services/accounts/keys";
import { ensureUser } from "../services/accounts/users";
import { type Context, closeContext, createContext } from "../services/context";
import { addAuditCommands } from "./audit-commands";
import { addBillingCommands } from "./billing-commands";
import { addJobCommands } from "./job-commands";
import type { Role } from "./server";
import { startServer } from "./start-server";

function openContext(): Context {
  const { config, unknown } = loadConfig();
  const logger = createLogger(config.logLevel);
  for (const name of unknown) logger.warn({ variable: name }, "unknown variable ignored");
  return createContext(config, logger);
}

async function withContext(work: (ctx: Context) => Promise<void>): Promise<void> {
  const ctx = openContext();
  try {
    await work(ctx);
  } finally {
    await closeContext(ctx);
  }
}

/** Writes the file atomically: a process that waits for it never reads a partial file. */
function writeAtomically(path: string, content: string): void {
  writeFileSync(`${path}.part`, content);
  renameSync(`${path}.part`, path);
}

async function serve(role: Role, options: { urlFile?: string }): Promise<void> {
  // Imported only here, because other commands start a third faster without this module.
  const { createServer } = await import("./server.js");
  const ctx = openContext();
  const service = await createServer(ctx, role, (url) => {
    ctx.logger.info({ url, role }, "listening");
    if (options.urlFile) writeAtomically(options.urlFile, url);
  });
  const stop = (signal: string): void => {
    ctx.logger.info({ signal }, "stopping");
    void service.stop().then(() => process.exit(0));
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  try {
    await startServer(ctx, service);
  } catch (error) {
    ctx.logger.fatal({ err: error }, "could not start");
    await service.stop();
    process.exit(1);
  }
}

const program = new Command("forge-server").description("The Forge control plane");

const roles: Record<Role, string> = {
  api: "HTTP API and agent bridge",
  worker: "Temporal worker",
  all: "both in one process",
};
for (const role of Object.keys(roles) as Role[]) {
  program
    .command(role)
    .description(roles[role])
    .option("--url-file <path>", "write the address to this file once listening")
    .action((options: { urlFile?: string }) => serve(role, options));
}

program
  .command("migrate")
  .description("bring the database's schema up to date")
  .option(
    "--grant <role>",
    "then grant this role the privileges of a running server, and revoke all others",
  )
  .action(({ grant: role }: { grant?: string }) =>
    withContext(async (ctx) => {
      const applied = await migrate(ctx.config.database.url);
      process.stdout.write(`${applied.length} migrations applied\n`);
      if (role === undefined) return;
      await grantServerRights(ctx.config.database.url, role);
      process.stdout.write(`${role} has the privileges of a server\n`);
    }),
  );

program
  .command("keys")
  .description("API keys")
  .command("create")
  .description("create a key (and its user), and print it; it can't be shown again")
  .requiredOption("--user <user_id>", "the tenant that the key belongs to")
  .addOption(new Option("--scope <scope>", "what it allows").choices(SCOPES).default("user"))
  .option("--name <name>", "a name for people", "default")
  .option("--shared", "workers registered with this worker key serve every tenant", false)
  .action((options: { user: string; scope: Scope; name: string; shared: boolean }) =>
    withContext(async (ctx) => {
      const key = await transaction(ctx.pool, async (db) => {
        await ensureUser(db, options.user, options.user);
        const created = await createKey(db, {
          userId: options.user,
          scope: options.scope,
          name: options.name,
          madeByAdmin: options.shared,
        });
        await recordAudit(db, {
          userId: options.user,
          action: "key_created",
          subject: created.key_id,
          principal: { keyId: "none", keyName: "forge-server keys create", scope: "admin" },
          after: { name: created.name, scope: created.scope, shared: options.shared },
        });
        return created.key;
      });
      process.stdout.write(`${key}\n`);
    }),
  );

addBillingCommands(program, withContext);
addAuditCommands(program, withContext);
addJobCommands(program, withContext);

program
  .command("config")
  .description("list the environment variables")
  .action(() => {
    process.stdout.write(`${describeVariables().join("\n")}\n`);
  });

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
