import { type JobEvent, jobStatus } from "./job-status.ts";
import { dataOf, type ServerSentEvent } from "./sse.ts";

/** Parses a job event. Throws ForgeHTTPError if its data is not a JSON object. */
export function jobEvent(sent: ServerSentEvent): JobEvent {
  const data = { ...dataOf(sent), event: sent.event } as JobEvent & { status?: string };
  if (typeof data.status !== "string") return data;
  return { ...data, status: jobStatus(data.status), raw_status: data.status };
}
