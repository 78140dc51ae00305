import type { Command } from "commander";
import type { Context } from "../infra/context";
import { findAuditEnd, hasAuditHash, listBrokenEntries } from "../infra/database/audit";
import { createPool } from "../infra/database/pool";

/** Over all entries there are: longer than a request may take. */
const TIMEOUT_MS = 3_600_000;

type WithContext = (work: (ctx: Context) => Promise<void>) => Promise<void>;

/** `forge-server audit …`: for whoever must be able to trust the log. */
export function addAuditCommands(program: Command, withContext: WithContext): void {
  const audit = program.command("audit").description("who did what");
  audit
    .command("verify")
    .description("check that no entry was changed or taken out; exits 1 where one was")
    .option("--expect <hash>", "an entry's hash that was noted before: it must still be there")
    .action((options: { expect?: string }) =>
      withContext(async ({ config, logger }) => {
        const pool = createPool(
          { connectionString: config.database.url, max: 1, timeoutMs: TIMEOUT_MS },
          logger,
        );
        try {
          const broken = await listBrokenEntries(pool);
          for (const { entry_id: id, fault } of broken) {
            process.stdout.write(`entry ${id} ${fault}\n`);
          }
          const isMissing =
            options.expect !== undefined && !(await hasAuditHash(pool, options.expect));
          if (isMissing) process.stdout.write(`no entry has the hash ${options.expect}\n`);
          const { entries, hash } = await findAuditEnd(pool);
          process.stdout.write(`${entries} entries, ${broken.length} broken; the last: ${hash}\n`);
          if (broken.length > 0 || isMissing) process.exitCode = 1;
        } finally {
          await pool.end();
        }
      }),
    );
}
