import type { Command } from "commander";
import { fileRecord } from "../activities/billing/billing";
import { findBillingRecord } from "../services/billing/billing-records";
import { endJob, settleBill } from "../services/jobs/end-job";
import { listStuckWrites } from "../services/jobs/stuck-writes";
import type { WithContext } from "./patient-pool";

/** `forge-server jobs …`: for what can't go on by itself. */
export function addJobCommands(program: Command, withContext: WithContext): void {
  const jobs = program.command("jobs").description("see to jobs that can't go on");
  jobs
    .command("stuck")
    .description("list what Forge could not write, and tries again; exits 1 if there is any")
    .action(() =>
      withContext(async ({ pool }) => {
        const stuck = await listStuckWrites(pool);
        for (const { workflow_id: id, activity, tries, since, error } of stuck) {
          process.stdout.write(
            `${id} ${activity}: ${tries} tries since ${since.toISOString()}: ${error}\n`,
          );
        }
        process.stdout.write(`${stuck.length} writes are stuck\n`);
        if (stuck.length > 0) process.exitCode = 1;
      }),
    );
  jobs
    .command("end <job_id>")
    .description("end a job whose work is over and whose end can't be written: it is failed")
    .requiredOption("--reason <text>", "what its user reads as the job's error")
    .action((jobId: string, { reason }: { reason: string }) =>
      withContext(async (ctx) => {
        const end = await endJob(ctx, jobId, reason);
        const refusal = REFUSALS[end];
        if (refusal) throw new Error(`${jobId} ${refusal}`);
        process.stdout.write(`${jobId} has failed; its workflow ends with its next try\n`);
        try {
          await settleBill(ctx, jobId);
          const record = await findBillingRecord(ctx.pool, jobId, null);
          if (record) await fileRecord(ctx, record);
        } catch (error) {
          throw new Error(`its bill is not settled, so say this again later: ${String(error)}`);
        }
      }),
    );
}

const REFUSALS: Partial<Record<Awaited<ReturnType<typeof endJob>>, string>> = {
  unknown: "is not a job of this Forge",
  "over before": "has ended already",
  "not finalising": "is still under way: cancel it",
};
