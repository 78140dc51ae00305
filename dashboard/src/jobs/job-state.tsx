import { type Mark, type StateStyle, Status, styleOf } from "../ui/status-mark";
import type { JobData } from "./job-data";

const STATUSES: Record<string, StateStyle> = {
  pending: { mark: "pending", name: "Pending" },
  provisioning_worker: { mark: "provisioning", name: "Provisioning" },
  assigned: { mark: "assigned", name: "Assigned" },
  running: { mark: "running", name: "Running" },
  completed: { mark: "completed", name: "Completed" },
  failed: { mark: "failed", name: "Failed" },
};

export const statusName = (raw: string): string => styleOf(STATUSES, raw).name;
export const statusMark = (raw: string): Mark => styleOf(STATUSES, raw).mark;

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
