import { Client, Connection } from "@temporalio/client";
import { defineSearchAttributeKey, SearchAttributeType } from "@temporalio/common";
import { SEARCH_ATTRIBUTES } from "../../core/jobs/workflow";
import type { Config } from "../config/config";

/** Deadline of a call, in ms. Applies when Temporal accepts connections but does not respond. */
export const TEMPORAL_DEADLINE_MS = 5_000;

const GRPC_ALREADY_EXISTS = 6;
const GRPC_RESOURCE_EXHAUSTED = 8;

export const searchAttributeKeys = {
  jobType: defineSearchAttributeKey(SEARCH_ATTRIBUTES.jobType, SearchAttributeType.KEYWORD),
  userId: defineSearchAttributeKey(SEARCH_ATTRIBUTES.userId, SearchAttributeType.KEYWORD),
};

/** Creates a client that connects at its first call, so the server can start without Temporal. */
export function createTemporalClient(config: Config["temporal"]): Client {
  const connection = Connection.lazy({
    ...config.connection,
    connectTimeout: TEMPORAL_DEADLINE_MS,
    channelArgs: {
      // By default gRPC waits up to two minutes before it reconnects.
      "grpc.initial_reconnect_backoff_ms": 200,
      "grpc.min_reconnect_backoff_ms": 200,
      "grpc.max_reconnect_backoff_ms": 1_000,
    },
  });
  return new Client({ connection, namespace: config.namespace });
}

/** Registers SEARCH_ATTRIBUTES. Temporal refuses a workflow that has an unregistered attribute. */
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

// The gRPC status codes INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION,
// OUT_OF_RANGE and UNIMPLEMENTED.
const REFUSALS = [3, 5, 7, 9, 11, 12];

/** Whether Temporal refused the call permanently. Any other error may be transient. */
export function isRefusal(error: unknown): boolean {
  const code = grpcCode(error);
  return code !== undefined && REFUSALS.includes(code);
}

/** The status code of a failed call, for example 14: unavailable. */
export function grpcCode(error: unknown): number | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "number") return at.code;
  }
  return undefined;
}

/**
 * The messages of an error and its causes. The causes are needed because the error of Temporal's
 * client only names the failed call.
 */
export function reasonOf(error: unknown): string {
  const messages = [String(error)];
  for (let at = error; at instanceof Error && at.cause instanceof Error; at = at.cause) {
    messages.push(at.cause.message);
  }
  return messages.join(": ");
}

/** Deadline of the availability check, in ms. */
const ANSWER_DEADLINE_MS = 1_000;

/**
 * Whether Temporal responds. Call this after another call has failed: the error of that call does
 * not show whether Temporal is down. A refusal by Temporal's rate limit counts as a response.
 */
export async function isTemporalReachable({ connection }: Client): Promise<boolean> {
  try {
    await connection.withDeadline(Date.now() + ANSWER_DEADLINE_MS, () =>
      connection.workflowService.getSystemInfo({}),
    );
    return true;
  } catch (error) {
    return grpcCode(error) === GRPC_RESOURCE_EXHAUSTED;
  }
}
