import {
  given,
  readList,
  readOneOf,
  readSomeOf,
  readText,
  type Search,
} from "../app/search-params";
import { PIPELINE_STATUSES, TEMPLATE_STEPS } from "../jobs/declared-types";

type PipelineStatus = (typeof PIPELINE_STATUSES)[number];

/** The filters of the pipeline list, as in its URL. */
export interface PipelinesSearch {
  status?: PipelineStatus[];
  tag?: string[];
  /** The start of an id, or part of a name or tag. */
  q?: string;
}

export const readPipelinesSearch = (search: Search): PipelinesSearch =>
  given({
    status: readSomeOf(search, "status", PIPELINE_STATUSES),
    tag: readList(search, "tag"),
    q: readText(search, "q"),
  });

const PIPELINE_VIEWS = ["graph", "gantt", "steps"] as const;
export type PipelineView = (typeof PIPELINE_VIEWS)[number];

export interface PipelineSearch {
  view?: PipelineView;
  /** The step whose details are shown. */
  step?: string;
}

export const readPipelineSearch = (search: Search): PipelineSearch =>
  given({
    view: readOneOf(search, "view", PIPELINE_VIEWS),
    step: readText(search, "step"),
  });

export type TemplateName = keyof typeof TEMPLATE_STEPS;
export const TEMPLATES = Object.keys(TEMPLATE_STEPS) as TemplateName[];

export interface NewPipelineSearch {
  template?: TemplateName;
}

export const readNewPipelineSearch = (search: Search): NewPipelineSearch =>
  given({ template: readOneOf(search, "template", TEMPLATES) });
