import { X } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { Input } from "../ui/field";
import { StatusMark } from "../ui/status-mark";
import styles from "./job-filters.module.css";
import { statusMark, statusName } from "./job-state";
import { JOB_STATUSES, JOB_TYPES, type JobsSearch } from "./search";

interface Props {
  search: JobsSearch;
  onChange: (search: JobsSearch) => void;
}

/** Filters that live in the address: a link to a filtered list is a link to the same list. */
export function JobFilters({ search, onChange }: Props) {
  const set = (change: Partial<JobsSearch>): void => onChange({ ...search, ...change });
  return (
    <div className={styles.filters}>
      <TagFilter onAdd={(tag) => set({ tag: [...new Set([...(search.tag ?? []), tag])] })} />
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
        show={(type) => type}
      />
      <label className={styles.day}>
        From
        <Input
          type="date"
          value={search.from ?? ""}
          onChange={({ target }) => set({ from: target.value })}
        />
      </label>
      <label className={styles.day}>
        to
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
    </div>
  );
}

function TagFilter({ onAdd }: { onAdd: (tag: string) => void }) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() === "") return;
    onAdd(text.trim());
    setText("");
  };
  return (
    <form onSubmit={submit} className={styles.tag}>
      <Input
        data-filter
        aria-label="Filter by tag"
        placeholder="Filter by tag"
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
    </form>
  );
}

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
    ...(["worker_id", "pipeline_id"] as const)
      .filter((name) => search[name])
      .map((name) => ({
        text: `${name === "worker_id" ? "worker" : "pipeline"}: ${search[name]}`,
        remove: () => set({ [name]: "" }),
      })),
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
