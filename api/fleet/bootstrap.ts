import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict } from "../../core/errors";
import { type Route, route } from "../../platform/http/route";
import { transaction } from "../../platform/postgres/transaction";
import { hostKeyField } from "../../platform/ssh/host-key";
import { recordAudit } from "../../services/accounts/audit";
import type { Context } from "../../services/context";
import { listSteps } from "../../services/fleet/bootstrap-steps";
import { requestBootstrap } from "../../services/fleet/bootstraps";
import { presentWorkerDetail, workerDetailSchema } from "./present-worker";
import { requireWorker } from "./workers";

export function bootstrapRoute(ctx: Context): Route {
  return route({
    method: "POST",
    paths: ["/api/workers/:worker_id/bootstrap"],
    scope: "user",
    operationId: "bootstrapWorker",
    tag: "Workers",
    summary: "Set a worker up again",
    description:
      "For a worker that was registered with `ssh_host` and is in `error` or `dead`. The setup keeps what is " +
      "installed and continues where it failed. Repeating the request during the setup changes nothing.",
    body: {
      schema: z.strictObject({
        ssh_host_key: hostKeyField
          .optional()
          .describe("the machine's new host key, if it was reinstalled; trusted from now on"),
      }),
      examples: {},
      optional: true,
    },
    responses: { 202: { description: "the worker, `bootstrapping`", schema: workerDetailSchema } },
    errorCodes: { 404: ["worker_not_found"], 409: ["not_set_up_by_ssh", "worker_in_service"] },
    async handle({ body, params, principal, request }) {
      const tenantScope = tenantScopeOf(principal);
      const registered = await requireWorker(ctx, params, tenantScope);
      const { worker_id: workerId, user_id: userId, ssh_host: host } = registered;
      if (host === null) {
        throw new Conflict("not_set_up_by_ssh", `worker "${workerId}" registered itself`);
      }
      const run = await transaction(ctx.pool, async (db) => {
        const newRun = await requestBootstrap(db, workerId, {
          hostKey: body.ssh_host_key ?? null,
          keyId: principal.ownerKeyId,
        });
        if (newRun !== undefined) {
          const after = { ssh_host_key: body.ssh_host_key ?? null };
          const action = "worker_set_up_again";
          await recordAudit(db, { userId, action, subject: workerId, principal, after });
        }
        return newRun;
      });
      const worker = await requireWorker(ctx, params, tenantScope);
      // A request that is repeated while the bootstrap is running is not an error.
      const isRunning = worker.status === "bootstrapping" && body.ssh_host_key === undefined;
      if (run === undefined && !isRunning) {
        const message = `worker "${workerId}" is ${worker.status}; only a worker in error or dead can be set up again`;
        throw new Conflict("worker_in_service", message);
      }
      request.log.info({ worker_id: workerId, run }, "bootstrap requested");
      return presentWorkerDetail(worker, await listSteps(ctx.pool, workerId));
    },
  });
}
