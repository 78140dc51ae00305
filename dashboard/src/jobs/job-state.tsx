import { type Mark, Status } from "../ui/status-mark";
import type { JobData } from "./job-data";

/** Display names of states. An unknown state of a newer server is shown as it is. */
const NAMES: Record<string, string> = {
  pending: "Pending",
  provisioning_worker: "Provisioning",
  assigned: "Assigned",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
};

const MARKS: Record<string, Mark> = {
  pending: "pending",
  provisioning_worker: "provisioning",
  assigned: "assigned",
  running: "running",
  completed: "completed",
  failed: "failed",
};

export const statusName = (raw: string): string => NAMES[raw] ?? raw;
export const statusMark = (raw: string): Mark => MARKS[raw] ?? "pending";

type Stated = Pick<JobData, "raw_status" | "error_code" | "cancel_requested_at">;

export function jobMark({ raw_status, error_code }: Stated): Mark {
  return raw_status === "failed" && error_code === "cancelled"
    ? "cancelled"
    : statusMark(raw_status);
}

export function jobStateName({ raw_status, error_code, cancel_requested_at }: Stated): string {
  if (raw_status === "failed" && error_code === "cancelled") return "Cancelled";
  if (cancel_requested_at && raw_status !== "failed" && raw_status !== "completed") {
    return "Cancelling";
  }
  return statusName(raw_status);
}

export const JobStatus = ({ job }: { job: Stated }) => (
  <Status mark={jobMark(job)} text={jobStateName(job)} />
);
