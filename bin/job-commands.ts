import type { Command } from "commander";
import { endJob, recordUnbilledHours } from "../services/jobs/end-job-by-operator";
import { listStuckWrites } from "../services/temporal/stuck-writes";
import type { WithContext } from "./long-statements";

/** `forge-server jobs …`: repairs jobs that need an operator. */
export function addJobCommands(program: Command, withContext: WithContext): void {
  const jobs = program.command("jobs").description("find and end stuck jobs");
  jobs
    .command("stuck")
    .description("list writes that keep failing and are retried; exits 1 if there are any")
    .action(() =>
      withContext(async ({ pool }) => {
        const stuck = await listStuckWrites(pool);
        for (const { workflow_id: id, activity, tries, since, error } of stuck) {
          const tried = `${tries} tries since ${since.toISOString()}`;
          process.stdout.write(`${id} ${activity}: ${tried}: ${error}\n`);
        }
        process.stdout.write(`${stuck.length} writes are stuck\n`);
        if (stuck.length > 0) process.exitCode = 1;
      }),
    );
  jobs
    .command("end <job_id>")
    .description("fail a job whose work is done but whose final writes keep failing")
    .requiredOption("--reason <text>", "the job's error message for its user")
    .action((jobId: string, { reason }: { reason: string }) =>
      withContext(async (ctx) => {
        const end = await endJob(ctx, jobId, reason);
        const refusal = REFUSALS[end];
        if (refusal) throw new Error(`${jobId} ${refusal}`);
        process.stdout.write(`${jobId} has failed; its workflow ends at its next retry\n`);
        try {
          await recordUnbilledHours(ctx, jobId);
        } catch (error) {
          throw new Error(`its bill is not final yet; run this command again: ${String(error)}`);
        }
      }),
    );
}

const REFUSALS: Partial<Record<Awaited<ReturnType<typeof endJob>>, string>> = {
  unknown: "does not exist",
  "already ended": "has already ended",
  "already billed": "has failed and is billed; only the file of its bill is missing",
  "not finalising": "is still in progress; cancel it",
};
