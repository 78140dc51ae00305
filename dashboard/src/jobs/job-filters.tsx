import { X } from "lucide-react";
import { Button } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { Input } from "../ui/field";
import { StatusMark } from "../ui/status-mark";
import { TextFilter } from "../ui/text-filter";
import { JOB_STATUSES, JOB_TYPES } from "./declared-types";
import styles from "./job-filters.module.css";
import { statusMark, statusName } from "./job-state";
import type { JobsSearch } from "./search";

interface Props {
  search: JobsSearch;
  onChange: (search: JobsSearch) => void;
}

/** The filters are kept in the URL, so that a link reproduces the list. */
export function JobFilters({ search, onChange }: Props) {
  const set = (change: Partial<JobsSearch>): void => onChange({ ...search, ...change });
  return (
    <>
      <TextFilter
        label="Filter by id, tag or notes"
        value={search.q ?? ""}
        onChange={(q) => set({ q })}
      />
      <ChoiceFilter
        title="Status"
        chosen={search.status ?? []}
        options={JOB_STATUSES}
        onChange={(status) => set({ status })}
        show={(status) => (
          <>
            <StatusMark mark={statusMark(status)} /> {statusName(status)}
          </>
        )}
      />
      <ChoiceFilter
        title="Type"
        chosen={search.job_type ?? []}
        options={JOB_TYPES}
        onChange={(job_type) => set({ job_type })}
      />
      <label className={styles.day}>
        <span>From</span>
        <Input
          type="date"
          value={search.from ?? ""}
          onChange={({ target }) => set({ from: target.value })}
        />
      </label>
      <label className={styles.day}>
        <span>to</span>
        <Input
          type="date"
          value={search.to ?? ""}
          onChange={({ target }) => set({ to: target.value })}
        />
      </label>
      <Chips search={search} set={set} />
      {Object.keys(search).length > 0 && (
        <Button kind="ghost" size="small" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

const spanText = ({ ended_after: after, ended_before: before }: JobsSearch): string =>
  [
    after && `from ${clock.format(Date.parse(after))}`,
    before && `to ${clock.format(Date.parse(before))}`,
  ]
    .filter(Boolean)
    .join(" ");

function Chips({
  search,
  set,
}: {
  search: JobsSearch;
  set: (change: Partial<JobsSearch>) => void;
}) {
  const chips = [
    ...(search.tag ?? []).map((tag) => ({
      text: `tag: ${tag}`,
      remove: () => set({ tag: search.tag?.filter((each) => each !== tag) ?? [] }),
    })),
    ...(search.error_code ?? []).map((code) => ({
      text: `error: ${code}`,
      remove: () => set({ error_code: search.error_code?.filter((each) => each !== code) ?? [] }),
    })),
    ...(["worker_id", "pipeline_id"] as const)
      .filter((name) => search[name])
      .map((name) => ({
        text: `${name === "worker_id" ? "worker" : "pipeline"}: ${search[name]}`,
        remove: () => set({ [name]: "" }),
      })),
    ...(search.ended_after || search.ended_before
      ? [
          {
            text: `ended ${spanText(search)}`,
            remove: () => set({ ended_after: "", ended_before: "" }),
          },
        ]
      : []),
  ];
  return chips.map(({ text, remove }) => (
    <Button
      key={text}
      size="small"
      className={styles.chip}
      onClick={remove}
      aria-label={`Remove ${text}`}
    >
      <span>{text}</span>
      <X size={13} />
    </Button>
  ));
}
