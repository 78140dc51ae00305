import type { Pipeline } from "@forge/sdk";
import { useForge } from "../api/context";
import { PAGE_SIZE } from "../api/use-list";
import { type LiveList, useLiveList } from "../api/use-live-list";
import { isOver } from "./pipeline-state";
import type { PipelinesSearch } from "./search";

/** The pipelines that match the filters, updated live. */
export function usePipelineList(search: PipelinesSearch): LiveList<Pipeline> {
  const forge = useForge();
  return useLiveList<Pipeline>({
    thing: "pipelines",
    filters: search,
    readPage: (after) => forge.pipelines.list({ ...search, pageSize: PAGE_SIZE }).page(after),
    readOne: (id) => forge.pipelines.get(id),
    idOf: ({ pipeline_id }) => pipeline_id,
    createdAt: ({ created_at }) => created_at,
    isFinal: isOver,
  });
}
