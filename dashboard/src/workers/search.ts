import { given, readList, readSomeOf, readText, type Search } from "../app/search-params";

export const WORKER_STATUSES = ["error", "dead", "bootstrapping", "busy", "idle"] as const;
type WorkerStatus = (typeof WORKER_STATUSES)[number];

export interface WorkersSearch {
  status?: WorkerStatus[];
  /** Names of GPUs; `CPU` for machines without a GPU. */
  gpu?: string[];
  /** Part of an id, a GPU's name, a host or a tag. */
  q?: string;
}

export const readWorkersSearch = (search: Search): WorkersSearch =>
  given({
    status: readSomeOf(search, "status", WORKER_STATUSES),
    gpu: readList(search, "gpu"),
    q: readText(search, "q"),
  });
