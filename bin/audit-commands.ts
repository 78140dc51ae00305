import type { Command } from "commander";
import { findAuditEnd, hasAuditHash, listBrokenEntries } from "../services/accounts/audit";
import { type WithContext, withPatientPool } from "./patient-pool";

/** `forge-server audit …`: for whoever must be able to trust the log. */
export function addAuditCommands(program: Command, withContext: WithContext): void {
  const audit = program.command("audit").description("who did what");
  audit
    .command("verify")
    .description("check that no entry was changed or taken out; exits 1 where one was")
    .option("--expect <hash>", "an entry's hash that was noted before: it must still be there")
    .action((options: { expect?: string }) =>
      withPatientPool(withContext, async (pool) => {
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
