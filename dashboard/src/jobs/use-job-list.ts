import { useMemo } from "react";
import { useForge } from "../api/context";
import { PAGE_SIZE } from "../api/use-list";
import { type LiveList, useLiveList } from "../api/use-live-list";
import { isFinished, type JobData, plainJob } from "./job-data";
import type { JobsSearch } from "./search";

/** The jobs that match the filters, updated live. */
export function useJobList(search: JobsSearch): LiveList<JobData> {
  const forge = useForge();
  const filters = useMemo(() => apiFilters(search), [search]);
  return useLiveList<JobData>({
    thing: "jobs",
    filters,
    readPage: async (after) => {
      const page = await forge.jobs.list({ ...filters, pageSize: PAGE_SIZE }).page(after);
      return { ...page, items: page.items.map(plainJob) };
    },
    readOne: async (id) => plainJob(await forge.jobs.get(id)),
    idOf: ({ job_id }) => job_id,
    createdAt: ({ created_at }) => created_at,
    isFinal: isFinished,
  });
}

function apiFilters({ from, to, ended_after, ended_before, ...rest }: JobsSearch) {
  return {
    ...rest,
    ...(ended_after ? { completed_after: ended_after } : {}),
    ...(ended_before ? { completed_before: ended_before } : {}),
    ...(from ? { created_after: new Date(`${from}T00:00:00`).toISOString() } : {}),
    ...(to ? { created_before: endOf(to).toISOString() } : {}),
  };
}

/** The start of the next day. This is not always 24 h later, because of daylight saving time. */
function endOf(day: string): Date {
  const date = new Date(`${day}T00:00:00`);
  date.setDate(date.getDate() + 1);
  return date;
}
