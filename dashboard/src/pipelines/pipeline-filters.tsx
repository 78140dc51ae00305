import { ChevronDown, X } from "lucide-react";
import { Button } from "../ui/button";
import { Menu, MenuToggle } from "../ui/menu";
import { Status } from "../ui/status-mark";
import styles from "./pipeline-filters.module.css";
import { pipelineStatusMark, pipelineStatusName } from "./pipeline-state";
import { PIPELINE_STATUSES, type PipelinesSearch } from "./search";
import { TextFilter } from "./text-filter";

interface Props {
  search: PipelinesSearch;
  onChange: (search: PipelinesSearch) => void;
}

/** Filters that live in the address: a link to a filtered list is a link to the same list. */
export function PipelineFilters({ search, onChange }: Props) {
  const set = (change: Partial<PipelinesSearch>): void => onChange({ ...search, ...change });
  const chosen = search.status ?? [];
  return (
    <div className={styles.filters}>
      <TextFilter
        label="Filter by name, tag or id"
        value={search.q ?? ""}
        onChange={(q) => set({ q })}
      />
      <Menu
        align="start"
        trigger={
          <Button
            aria-label={`Status: ${chosen.map(pipelineStatusName).join(", ") || "all"}`}
          >
            Status
            {chosen.length > 0 && <span className={styles.count}>{chosen.length}</span>}
            <ChevronDown size={14} />
          </Button>
        }
      >
        {PIPELINE_STATUSES.map((status) => (
          <MenuToggle
            key={status}
            checked={chosen.includes(status)}
            onChange={(isChosen) =>
              set({
                status: PIPELINE_STATUSES.filter((each) =>
                  each === status ? isChosen : chosen.includes(each),
                ),
              })
            }
          >
            <Status mark={pipelineStatusMark(status)} text={pipelineStatusName(status)} />
          </MenuToggle>
        ))}
      </Menu>
      {search.tag?.map((tag) => (
        <Button
          key={tag}
          size="small"
          className={styles.chip}
          onClick={() => set({ tag: search.tag?.filter((each) => each !== tag) ?? [] })}
          aria-label={`Remove tag: ${tag}`}
        >
          <span>tag: {tag}</span>
          <X size={13} />
        </Button>
      ))}
      {Object.keys(search).length > 0 && (
        <Button kind="ghost" size="small" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </div>
  );
}
