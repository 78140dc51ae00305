import { isTemporalReachable, reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import type { Topic } from "../outbox/topic";

/**
 * Maximum number of entries of one topic that are delivered at the same time. This is low enough
 * that each entry is delivered before its lease expires.
 */
const CONCURRENCY = 20;
const PAUSE_MS = 1_000;

/** The settings shared by all outbox topics whose receiver is Temporal. */
export const temporalReceiver = ({
  temporal,
}: Context): Pick<Topic<never, never>, "concurrency" | "pauseMs" | "outageOf" | "isBack"> => ({
  concurrency: CONCURRENCY,
  pauseMs: PAUSE_MS,
  // The error alone doesn't show whether the call was wrong or Temporal is down, so ask Temporal.
  outageOf: async (error) =>
    (await isTemporalReachable(temporal)) ? undefined : `Temporal is down: ${reasonOf(error)}`,
  isBack: () => isTemporalReachable(temporal),
});
