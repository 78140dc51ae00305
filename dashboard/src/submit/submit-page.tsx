import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useForge } from "../api/context";
import { isNotFound } from "../api/errors";
import { JOB_TYPE_FACTS, JOB_TYPES, type JobType } from "../jobs/declared-types";
import { type JobData, plainJob } from "../jobs/job-data";
import { NotLoaded } from "../ui/detail";
import { Empty } from "../ui/empty";
import { JobLink } from "../ui/links";
import { Page } from "../ui/page";
import { valuesOf } from "./form-values";
import { SubmitForm } from "./submit-form";
import styles from "./submit-page.module.css";

const route = getRouteApi("/submit");
const BLANK = { form: 0, values: {} };

export function SubmitPage() {
  const { type, from } = route.useSearch();
  const source = useSource(from);
  const shown = type ?? (source.data?.job_type as JobType | undefined) ?? JOB_TYPES[0];
  return (
    <Page
      title={from ? "Clone a job" : "Submit a job"}
      above={from && <JobLink id={from}>Filled from {from}</JobLink>}
    >
      <Types shown={shown} from={from} />
      <p className="quiet">{JOB_TYPE_FACTS[shown].about}</p>
      {from && !source.data ? (
        <Waiting error={source.error} onRetry={source.refetch} />
      ) : (
        // The key resets the form when `from` changes. A change of the job type keeps the typed
        // text.
        <SubmitForm key={from ?? ""} type={shown} start={startOf(source.data)} />
      )}
    </Page>
  );
}

const startOf = (job: JobData | undefined) => (job ? valuesOf(job) : BLANK);

/** The job that fills the form. Not polled: the form uses the job only when it opens. */
function useSource(from: string | undefined) {
  const forge = useForge();
  return useQuery({
    queryKey: ["jobs", "source", from],
    enabled: from !== undefined,
    queryFn: async ({ signal }) => plainJob(await forge.jobs.get(from ?? "", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function Types({ shown, from }: { shown: JobType; from: string | undefined }) {
  return (
    <nav aria-label="Job type" className={styles.types}>
      {JOB_TYPES.map((type) => (
        <Link
          key={type}
          to="/submit"
          search={{ type, ...(from ? { from } : {}) }}
          replace
          className={styles.type}
          aria-current={type === shown ? "page" : undefined}
        >
          {type}
        </Link>
      ))}
    </nav>
  );
}

function Waiting({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (isNotFound(error)) {
    return (
      <Empty
        title="There is no job with this id, or it is another tenant's."
        action={<Link to="/submit">Begin with an empty form</Link>}
      />
    );
  }
  return <NotLoaded thing="job" error={error} onRetry={onRetry} />;
}
