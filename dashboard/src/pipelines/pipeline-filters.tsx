import { X } from "lucide-react";
import { PIPELINE_STATUSES } from "../jobs/declared-types";
import { Button } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { StatusMark } from "../ui/status-mark";
import { TextFilter } from "../ui/text-filter";
import { pipelineStatusMark, pipelineStatusName } from "./pipeline-state";
import type { PipelinesSearch } from "./search";

interface Props {
  search: PipelinesSearch;
  onChange: (search: PipelinesSearch) => void;
}

/** The filters are kept in the URL, so that a link reproduces the list. */
export function PipelineFilters({ search, onChange }: Props) {
  const set = (change: Partial<PipelinesSearch>): void => onChange({ ...search, ...change });
  return (
    <>
      <TextFilter
        label="Filter by name, tag or id"
        value={search.q ?? ""}
        onChange={(q) => set({ q })}
      />
      <ChoiceFilter
        title="Status"
        chosen={search.status ?? []}
        options={PIPELINE_STATUSES}
        onChange={(status) => set({ status })}
        show={(status) => (
          <>
            <StatusMark mark={pipelineStatusMark(status)} /> {pipelineStatusName(status)}
          </>
        )}
      />
      {search.tag?.map((tag) => (
        <Button
          key={tag}
          size="small"
          onClick={() => set({ tag: search.tag?.filter((each) => each !== tag) ?? [] })}
          aria-label={`Remove tag: ${tag}`}
        >
          tag: {tag}
          <X size={13} />
        </Button>
      ))}
      {Object.keys(search).length > 0 && (
        <Button kind="ghost" size="small" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </>
  );
}
