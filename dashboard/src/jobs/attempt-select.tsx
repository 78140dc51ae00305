import { useId } from "react";
import { Select } from "../ui/field";
import type { JobData } from "./job-data";
import styles from "./job-log.module.css";

/** Chooses the attempt whose log or curves are shown. Hidden if there is only one. */
export function AttemptSelect({
  job,
  attempt,
  onChange,
}: {
  job: JobData;
  attempt: number;
  onChange: (attempt: number) => void;
}) {
  const id = useId();
  if (job.attempts < 2) return null;
  return (
    <label className={styles.attempt} htmlFor={id}>
      Attempt
      <Select id={id} value={attempt} onChange={({ target }) => onChange(Number(target.value))}>
        {Array.from({ length: job.attempts }, (_, at) => (
          <option key={`attempt-${at + 1}`} value={at + 1}>
            {at + 1}
          </option>
        ))}
      </Select>
    </label>
  );
}
