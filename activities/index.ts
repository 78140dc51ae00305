import type { Context } from "../infra/context";
import { createAttemptActivities } from "./attempts";
import { createBillingActivities } from "./billing";
import { createManifestActivities } from "./manifests";

/** Everything that workflows may do to the world. */
export function createActivities(ctx: Context) {
  return {
    ...createAttemptActivities(ctx),
    ...createBillingActivities(ctx),
    ...createManifestActivities(ctx),
  };
}

export type Activities = ReturnType<typeof createActivities>;
