import { z } from "zod";
import type { TenantScope } from "../../core/accounts/permissions";
import { DEPLOYMENT_STATUSES, MAX_REPLICAS } from "../../core/deployments/workflow";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { type Route, route } from "../../platform/http/route";
import type { Context } from "../../services/context";
import {
  findDeployments,
  listDeployments,
  type ShownDeploymentRow,
} from "../../services/deployments/deployments";
import { listPlacements } from "../../services/deployments/placements";
import { scaleDeployment } from "../../services/deployments/scale-deployment";
import { stopDeployment } from "../../services/deployments/stop-deployment";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { requireOne } from "../require-one";
import {
  deploymentDetailSchema,
  deploymentSchema,
  presentDeployment,
  presentDeploymentDetail,
} from "./present-deployment";

const NOT_FOUND = { 400: ["ambiguous_id"], 404: ["deployment_not_found"] };
const query = z.strictObject(tenantQuery);

const replicas = z.int().min(1).max(MAX_REPLICAS).optional();

export function deploymentRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "GET",
      paths: ["/api/deployments"],
      scope: "user",
      operationId: "listDeployments",
      tag: "Deployments",
      summary: "List deployments, newest first",
      sharesResult: true,
      query: z.strictObject({
        status: z.array(z.enum(DEPLOYMENT_STATUSES)).optional(),
        ...pageQuery,
        ...tenantQuery,
      }),
      responses: {
        200: {
          description: "a page of deployments",
          schema: listOf("deployments", deploymentSchema),
        },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const tenantScope = tenantFilter(principal, query.user_id);
        const rows = await listDeployments(ctx.pool, tenantScope, query.status, page);
        const ids = rows.map((row) => row.deployment_id);
        const placements = await listPlacements(ctx.pool, ids, true);
        const present = (row: ShownDeploymentRow) => {
          const own = placements.filter((one) => one.deployment_id === row.deployment_id);
          return presentDeployment(row, own);
        };
        return presentPage("deployments", rows, page, (row) => row.deployment_id, present);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/deployments/:deployment_id"],
      scope: "user",
      operationId: "getDeployment",
      tag: "Deployments",
      summary: "Read a deployment and its placements",
      query,
      responses: { 200: { description: "the deployment", schema: deploymentDetailSchema } },
      errorCodes: NOT_FOUND,
      handle: async ({ params, principal, query: { user_id } }) =>
        await detail(ctx, params, tenantFilter(principal, user_id)),
    }),
    route({
      method: "POST",
      paths: ["/api/deployments/:deployment_id/stop"],
      scope: "user",
      operationId: "stopDeployment",
      tag: "Deployments",
      summary: "Stop a deployment",
      description:
        "Billing ends with this request. The deployment is `stopping` while one of its servers may still run, " +
        "then `stopped`. Stopping a stopped deployment changes nothing.",
      query,
      body: { schema: z.strictObject({}), examples: {}, optional: true },
      responses: {
        202: { description: "the deployment is stopping", schema: deploymentDetailSchema },
        200: { description: "the deployment is stopped", schema: deploymentDetailSchema },
      },
      errorCodes: NOT_FOUND,
      async handle({ params, principal, query: { user_id }, reply }) {
        const tenantScope = tenantFilter(principal, user_id);
        const { deployment_id: id } = await requireDeployment(ctx, params, tenantScope);
        await stopDeployment(ctx, id, tenantScope, principal.keyName);
        const stopped = await detail(ctx, params, tenantScope);
        reply.code(stopped.status === "stopped" ? 200 : 202);
        return stopped;
      },
    }),
    route({
      method: "PATCH",
      paths: ["/api/deployments/:deployment_id"],
      scope: "user",
      operationId: "scaleDeployment",
      tag: "Deployments",
      summary: "Change how many servers a deployment has",
      description:
        "The deployment has at least `min_replicas` servers, and up to `max_replicas` while suitable workers " +
        "are idle. If it has more than `max_replicas`, the newest servers are stopped.",
      query,
      body: {
        schema: z.strictObject({ min_replicas: replicas, max_replicas: replicas }),
        examples: { two: { min_replicas: 1, max_replicas: 2 } },
      },
      responses: { 200: { description: "the deployment", schema: deploymentDetailSchema } },
      errorCodes: { ...NOT_FOUND, 409: ["deployment_stopped"] },
      async handle({ params, principal, query: { user_id }, body }) {
        const tenantScope = tenantFilter(principal, user_id);
        await scaleDeployment(ctx, await requireDeployment(ctx, params, tenantScope), body);
        return await detail(ctx, params, tenantScope);
      },
    }),
  ];
}

export async function requireDeployment(
  ctx: Context,
  { deployment_id: id = "" }: Record<string, string>,
  tenantScope: TenantScope,
): Promise<ShownDeploymentRow> {
  return requireOne("deployment", id, await findDeployments(ctx.pool, id, tenantScope));
}

async function detail(ctx: Context, params: Record<string, string>, tenantScope: TenantScope) {
  const row = await requireDeployment(ctx, params, tenantScope);
  return presentDeploymentDetail(row, await listPlacements(ctx.pool, [row.deployment_id]));
}
