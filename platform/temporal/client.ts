import { Client, Connection } from "@temporalio/client";
import { defineSearchAttributeKey, SearchAttributeType } from "@temporalio/common";
import { SEARCH_ATTRIBUTES } from "../../core/jobs/workflow";
import type { Config } from "../config/config";

/** Longest a call may take while Temporal is frozen rather than gone, in ms. */
export const TEMPORAL_DEADLINE_MS = 5_000;

const GRPC_ALREADY_EXISTS = 6;

export const searchAttributeKeys = {
  jobType: defineSearchAttributeKey(SEARCH_ATTRIBUTES.jobType, SearchAttributeType.KEYWORD),
  userId: defineSearchAttributeKey(SEARCH_ATTRIBUTES.userId, SearchAttributeType.KEYWORD),
};

/** A client that connects at its first call: the server starts with Temporal away, too. */
export function createTemporalClient(config: Config["temporal"]): Client {
  const connection = Connection.lazy({
    ...config.connection,
    connectTimeout: TEMPORAL_DEADLINE_MS,
    channelArgs: {
      // gRPC's own default waits up to two minutes before it looks again.
      "grpc.initial_reconnect_backoff_ms": 200,
      "grpc.min_reconnect_backoff_ms": 200,
      "grpc.max_reconnect_backoff_ms": 1_000,
    },
  });
  return new Client({ connection, namespace: config.namespace });
}

/** Makes our search attributes known; starting a workflow with an unknown one is refused. */
export async function registerSearchAttributes(client: Client): Promise<void> {
  const indexedValueTypeKeyword = 2;
  try {
    await client.connection.withDeadline(Date.now() + 4 * TEMPORAL_DEADLINE_MS, () =>
      (client.connection as Connection).operatorService.addSearchAttributes({
        namespace: client.options.namespace,
        searchAttributes: Object.fromEntries(
          Object.values(SEARCH_ATTRIBUTES).map((name) => [name, indexedValueTypeKeyword]),
        ),
      }),
    );
  } catch (error) {
    if (grpcCode(error) !== GRPC_ALREADY_EXISTS) throw error;
  }
}

/** INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED. */
const REFUSALS = [3, 5, 7, 9, 11, 12];

/** Whether Temporal refuses the call itself: anything else may pass, and passes with its own trouble. */
export function isRefusal(error: unknown): boolean {
  const code = grpcCode(error);
  return code !== undefined && REFUSALS.includes(code);
}

function grpcCode(error: unknown): number | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "number") return at.code;
  }
  return undefined;
}

/** An error with its causes: the client's own says only which call failed. */
export function reasonOf(error: unknown): string {
  const said = [String(error)];
  for (let at = error; at instanceof Error && at.cause instanceof Error; at = at.cause) {
    said.push(at.cause.message);
  }
  return said.join(": ");
}

/** Longest that Temporal may take to say that it is there, in ms. */
const ANSWER_DEADLINE_MS = 1_000;

/** Whether Temporal answers: of a call that failed, its error alone does not tell whose fault it was. */
export async function isTemporalThere({ connection }: Client): Promise<boolean> {
  try {
    await connection.withDeadline(Date.now() + ANSWER_DEADLINE_MS, () =>
      connection.workflowService.getSystemInfo({}),
    );
    return true;
  } catch {
    return false;
  }
}
