import type { Command } from "commander";
import { transaction } from "../platform/postgres/transaction";
import { rebuildTotals } from "../services/billing/billing-totals";
import { recompute } from "../services/billing/recompute";
import { type WithContext, withPatientPool } from "./patient-pool";

/** `forge-server billing …`: for whoever answers for the numbers. */
export function addBillingCommands(program: Command, withContext: WithContext): void {
  const billing = program.command("billing").description("check the bills");
  billing
    .command("recompute")
    .description("compute every record and every month's total again; exits 1 over any difference")
    .option("--check", "report differences and change nothing (the default)", true)
    .option("--rebuild-totals", "add the months' totals up anew first; records are never changed")
    .action((options: { rebuildTotals?: true }) =>
      withPatientPool(withContext, async (pool) => {
        if (options.rebuildTotals) {
          const totals = await transaction(pool, rebuildTotals);
          process.stdout.write(`${totals} totals are added up anew\n`);
        }
        const { records, differences } = await recompute(pool);
        for (const difference of differences) process.stdout.write(`${difference}\n`);
        process.stdout.write(`${records} records, ${differences.length} differences\n`);
        if (differences.length > 0) process.exitCode = 1;
      }),
    );
}
