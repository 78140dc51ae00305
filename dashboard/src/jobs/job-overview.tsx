import { Notice } from "../ui/error-banner";
import { Json } from "../ui/json";
import { Section, Stack } from "../ui/page";
import type { JobData } from "./job-data";
import styles from "./job-overview.module.css";

export function JobOverview({ job }: { job: JobData }) {
  const hasEntries = (value: object): boolean => Object.keys(value).length > 0;
  return (
    <Stack gap={20}>
      {job.error !== null && (
        <Section title="Error">
          <div className={styles.error}>
            <code>{job.error_code}</code>
            <pre>{job.error}</pre>
          </div>
        </Section>
      )}
      {job.warnings?.map((warning) => (
        <Notice key={warning.param + warning.code} tone="warn">
          <strong>{warning.param}:</strong> {warning.message}
        </Notice>
      ))}
      <div className={styles.pair}>
        <Section title="Payload">
          <Json value={job.payload} label="the payload" />
        </Section>
        <Section title="Result">
          {job.result ? (
            <Json value={job.result} label="the result" />
          ) : (
            <p className="quiet">{job.completed_at ? "It has none." : "Not there yet."}</p>
          )}
        </Section>
        {hasEntries(job.resources) && (
          <Section title="Needs of its worker">
            <Json value={job.resources} label="the resources" />
          </Section>
        )}
        {hasEntries(job.params) && (
          <Section title="Parameters for the worker">
            <Json value={job.params} label="the parameters" />
          </Section>
        )}
      </div>
    </Stack>
  );
}
