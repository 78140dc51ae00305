import type { Command } from "commander";
import { findAuditEnd, hasAuditHash, listBrokenEntries } from "../services/accounts/audit";
import { type WithContext, withLongStatements } from "./long-statements";

/** `forge-server audit …`: verifies the audit log. */
export function addAuditCommands(program: Command, withContext: WithContext): void {
  const audit = program.command("audit").description("the audit log");
  audit
    .command("verify")
    .description("check that no entry was changed or removed; exits 1 if one was")
    .option("--expect <hash>", "a hash from an earlier check; its entry must still exist")
    .action((options: { expect?: string }) =>
      withLongStatements(withContext, async (pool) => {
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
      }),
    );
}
