import { isTemporalThere, reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import type { Topic } from "../outbox/topic";

/** Parallel calls, and leased entries, of one topic. Low enough that no entry waits longer than its lease. */
const CONCURRENCY = 20;
const PAUSE_MS = 1_000;

/** The common part of all topics whose receiver is Temporal. */
export const temporalReceiver = ({
  temporal,
}: Context): Pick<Topic<never, never>, "concurrency" | "pauseMs" | "outageOf" | "isBack"> => ({
  concurrency: CONCURRENCY,
  pauseMs: PAUSE_MS,
  // The error alone doesn't show whether the call was wrong or Temporal is down.
  outageOf: async (error) =>
    (await isTemporalThere(temporal)) ? undefined : `Temporal is down: ${reasonOf(error)}`,
  isBack: () => isTemporalThere(temporal),
});
