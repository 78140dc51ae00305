import { z } from "zod";
import { WORKER_STATUSES } from "../../core/jobs/states";
import { type Route, route } from "../../platform/http/route";
import { recordOf } from "../../platform/record-of";
import type { Context } from "../../services/context";
import { type FleetGroup, readFleetGroups } from "../../services/fleet/fleet-summary";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";

const gpuSchema = z.object({
  gpu_type: z.string(),
  workers: z.int(),
  gpus: z.int(),
  busy_gpus: z.int().describe("GPUs of workers that run a job"),
  idle_gpus: z.int().describe("GPUs of workers that could take a job"),
});

const fleetSchema = z
  .object({
    workers: z.int(),
    by_status: z.object(recordOf(WORKER_STATUSES, () => z.int())),
    draining: z.int().describe("draining workers; they also count as idle or busy"),
    gpus: z.int(),
    busy_gpus: z.int(),
    idle_gpus: z.int(),
    by_gpu_type: z.array(gpuSchema).describe("most GPUs first; includes CPU workers"),
    util: z.number().nullable().describe("percent; mean of idle and busy workers that report it"),
    mem_used: z.number().nullable().describe("GB, sum of idle and busy workers"),
    mem_total: z.number().nullable().describe("GB, sum of idle and busy workers"),
  })
  .meta({ id: "Fleet" });

export function fleetRoute(ctx: Context): Route {
  return route({
    method: "GET",
    paths: ["/api/fleet"],
    scope: "user",
    operationId: "getFleet",
    tag: "Workers",
    summary: "Count your own and shared workers, and their GPUs",
    query: z.strictObject(tenantQuery),
    responses: { 200: { description: "the fleet", schema: fleetSchema } },
    async handle({ principal, query }) {
      const tenantScope = tenantFilter(principal, query.user_id);
      return summarise(await readFleetGroups(ctx.pool, tenantScope));
    },
  });
}

function summarise(groups: FleetGroup[]): z.infer<typeof fleetSchema> {
  const names = [...new Set(groups.map(({ gpu_type: type }) => type))];
  const types = names.map((name) => summariseType(name, groups));
  const reporting = sum(groups, ({ reporting: count }) => count);
  const live = groups.filter(isLive);
  const total = (pick: (group: FleetGroup) => number | null): number | null =>
    live.some((group) => pick(group) !== null) ? sum(live, (group) => pick(group) ?? 0) : null;
  return {
    workers: sum(groups, ({ workers }) => workers),
    by_status: recordOf(WORKER_STATUSES, (status) =>
      sum(groups, (group) => (group.status === status ? group.workers : 0)),
    ),
    draining: sum(live, ({ draining, workers }) => (draining ? workers : 0)),
    gpus: sum(types, ({ gpus }) => gpus),
    busy_gpus: sum(types, ({ busy_gpus: gpus }) => gpus),
    idle_gpus: sum(types, ({ idle_gpus: gpus }) => gpus),
    by_gpu_type: types.sort((a, b) => b.gpus - a.gpus || b.workers - a.workers),
    util:
      reporting > 0
        ? sum(groups, ({ util, reporting: count }) => (util ?? 0) * count) / reporting
        : null,
    mem_used: total((group) => group.mem_used),
    mem_total: total((group) => group.mem_total),
  };
}

function summariseType(type: string, all: FleetGroup[]): z.infer<typeof gpuSchema> {
  const groups = all.filter((group) => group.gpu_type === type);
  const busy = groups.filter(({ status }) => status === "busy");
  const idle = groups.filter(({ status, draining }) => status === "idle" && !draining);
  return {
    gpu_type: type,
    workers: sum(groups, ({ workers }) => workers),
    gpus: sum(groups, ({ gpus }) => gpus),
    busy_gpus: sum(busy, ({ gpus }) => gpus),
    idle_gpus: sum(idle, ({ gpus }) => gpus),
  };
}

const isLive = ({ status }: FleetGroup): boolean => status === "idle" || status === "busy";

const sum = <T>(items: T[], pick: (item: T) => number): number =>
  items.reduce((total, item) => total + pick(item), 0);
