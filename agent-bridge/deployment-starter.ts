import { DEPLOYMENT_WORKFLOW, type DeploymentWorkflowInput } from "../core/deployment-workflow";
import { deploymentWorkflowId } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import {
  ask,
  claimNudges,
  claimUnseen,
  isAnyDeployed,
  type Nudge,
  noteTold,
} from "../infra/database/deployment-nudges";
import { askToGrow } from "../infra/database/growing-deployments";
import { endOverdueStops } from "../infra/database/placements";
import { Loop } from "../infra/loop";
import { runEach } from "../infra/run-each";
import type { Part } from "../infra/service";
import { reasonOf } from "../infra/temporal";
import { isRunning, nudgeWorkflow } from "./nudge-workflow";

const SWEEP_MS = 1_000;
const BATCH = 20;

/**
 * Tells the workflows of deployments that there is something to look at, and starts those that do not
 * run. The debt is the deployment's row: it was asked for more often than its workflow was told. Beside
 * that it ends what nobody's heartbeat ends, and looks now and then whether the workflows are there.
 */
export class DeploymentStarter implements Part {
  readonly name = "deployment-starter";
  private readonly nudging: Loop;
  private readonly looking: Loop;
  private readonly inFlight = new Set<Promise<void>>();
  /** Where the next sweep goes on with deployments that could grow. */
  private growAfter = "";

  constructor(private readonly ctx: Context) {
    const lookMs = Math.min(15_000, (ctx.config.reconcileAfterS * 1000) / 4);
    this.nudging = new Loop("deployment-starter", SWEEP_MS, () => this.sweep(), ctx);
    this.looking = new Loop("deployment-look", lookMs, () => this.look(), ctx);
  }

  start(): void {
    this.ctx.signals.on("deployment", this.onDeployment);
    this.nudging.start();
    this.looking.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("deployment", this.onDeployment);
    await Promise.all([this.nudging.stop(), this.looking.stop()]);
    await Promise.allSettled(this.inFlight);
  }

  /** Right after the commit. Under load the sweep does it. */
  private readonly onDeployment = (deploymentId: string): void => {
    if (this.inFlight.size >= BATCH) return;
    const done: Promise<void> = claimNudges(
      this.ctx.pool,
      this.ctx.config.outbox.leaseS,
      1,
      deploymentId,
    )
      .then((due) => this.nudgeAll(due))
      .catch(() => undefined)
      .finally(() => this.inFlight.delete(done));
    this.inFlight.add(done);
  };

  private async sweep(): Promise<void> {
    // One glance in place of the others: most of the time there is no deployment.
    if (!(await isAnyDeployed(this.ctx.pool))) return;
    // What is owed goes first, and one part that fails keeps no other from running.
    await runEach([
      () => this.nudgeDue(),
      async () => {
        const { stopGraceS } = this.ctx.config.deployments;
        const ended = await endOverdueStops(this.ctx.pool, stopGraceS);
        if (ended.length > 0) await this.nudgeDue();
      },
      async () => {
        const { asked, next } = await askToGrow(this.ctx.pool, this.growAfter);
        this.growAfter = next;
        if (asked > 0) await this.nudgeDue();
      },
    ]);
  }

  private async nudgeDue(): Promise<void> {
    await this.nudgeAll(await claimNudges(this.ctx.pool, this.ctx.config.outbox.leaseS, BATCH));
  }

  private async nudgeAll(due: Nudge[]): Promise<void> {
    await Promise.all(
      due.map((nudge) =>
        this.nudge(nudge).catch((error: unknown) =>
          this.ctx.logger.warn(
            { deployment_id: nudge.deployment_id, err: reasonOf(error) },
            "deployment not nudged",
          ),
        ),
      ),
    );
  }

  private async nudge({
    deployment_id: deploymentId,
    user_id: userId,
    asked,
  }: Nudge): Promise<void> {
    const input: DeploymentWorkflowInput = { deploymentId };
    await nudgeWorkflow(this.ctx, {
      workflow: DEPLOYMENT_WORKFLOW,
      workflowId: deploymentWorkflowId(deploymentId),
      input,
      userId,
      summary: `deployment of ${userId}`,
    });
    await noteTold(this.ctx.pool, deploymentId, asked);
  }

  /** Workflows that somebody ended, or that Temporal lost. One that runs is not disturbed. */
  private async look(): Promise<void> {
    for (const id of await claimUnseen(this.ctx.pool, this.ctx.config.reconcileAfterS, BATCH)) {
      await this.askIfGone(id).catch((error: unknown) =>
        this.ctx.logger.warn({ deployment_id: id, err: reasonOf(error) }, "cannot look yet"),
      );
    }
  }

  private async askIfGone(deploymentId: string): Promise<void> {
    if (await isRunning(this.ctx, deploymentWorkflowId(deploymentId))) return;
    this.ctx.logger.warn({ deployment_id: deploymentId }, "its workflow is gone");
    await ask(this.ctx.pool, deploymentId);
  }
}
