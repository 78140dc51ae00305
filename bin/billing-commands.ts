import type { Command } from "commander";
import { transaction } from "../platform/postgres/transaction";
import { rebuildTotals } from "../services/billing/billing-totals";
import { recompute } from "../services/billing/recompute";
import { type WithContext, withLongStatements } from "./long-statements";

/** `forge-server billing …`: recomputes and checks the bills. */
export function addBillingCommands(program: Command, withContext: WithContext): void {
  const billing = program.command("billing").description("check the bills");
  billing
    .command("recompute")
    .description("recompute every record and every month's total; exits 1 if any differs")
    .option("--check", "report differences and change nothing (the default)", true)
    .option("--rebuild-totals", "first rebuild the months' totals; records are never changed")
    .action((options: { rebuildTotals?: true }) =>
      withLongStatements(withContext, async (pool) => {
        if (options.rebuildTotals) {
          const totals = await transaction(pool, rebuildTotals);
          process.stdout.write(`${totals} totals rebuilt\n`);
        }
        const { records, differences } = await recompute(pool);
        for (const difference of differences) process.stdout.write(`${difference}\n`);
        process.stdout.write(`${records} records, ${differences.length} differences\n`);
        if (differences.length > 0) process.exitCode = 1;
      }),
    );
}
