import type { Context } from "../infra/context";
import { createAttemptActivities } from "./attempts";
import { createBootstrapActivities } from "./bootstrap";
import { createFinalActivities } from "./finish";

/** Everything that workflows may do to the world. */
export function createActivities(ctx: Context) {
  return {
    ...createAttemptActivities(ctx),
    ...createFinalActivities(ctx),
    ...createBootstrapActivities(ctx),
  };
}

export type Activities = ReturnType<typeof createActivities>;
