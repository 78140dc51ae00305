import { cpuSeconds } from "../../stack/cpu-time";
import { processesIn } from "../../stack/process-table";
import type { Forge, Stage } from "./stage";

type Part = "forge-server" | "Temporal" | "Postgres" | "the bare worker" | "the load generator";

/** CPU time of the processes so far, in seconds. Connections of Postgres that have ended are not counted. */
export function cpuOf(stage: Stage, forge: Forge): Record<Part, number> {
  return {
    "forge-server": cpuSeconds(forge.pid),
    Temporal: cpuSeconds(stage.temporalPid),
    Postgres: processesIn(stage.postgresFolder).reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    "the bare worker": cpuSeconds(stage.bareWorkerPid),
    "the load generator": cpuSeconds(stage.generator.pid),
  };
}
