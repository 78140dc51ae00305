import { given, readOneOf, readSomeOf, readText, type Search } from "../app/search-params";
import { ARTIFACT_KINDS } from "../jobs/declared-types";

type Kind = (typeof ARTIFACT_KINDS)[number];

export const kindName = (kind: string): string => kind.replaceAll("_", " ");

export interface ArtifactsSearch {
  kind?: Kind[];
  /** The start of an id, or part of a name. */
  q?: string;
}

export const readArtifactsSearch = (search: Search): ArtifactsSearch =>
  given({ kind: readSomeOf(search, "kind", ARTIFACT_KINDS), q: readText(search, "q") });

export interface CompareSearch {
  /** The ids of the two artifacts. */
  a?: string | undefined;
  b?: string | undefined;
  /** If set, the comparison also shows the fields that are equal in both artifacts. */
  equal?: "shown" | undefined;
}

export const readCompareSearch = (search: Search): CompareSearch =>
  given({
    a: readText(search, "a"),
    b: readText(search, "b"),
    equal: readOneOf(search, "equal", ["shown"] as const),
  });

const ARTIFACT_TABS = ["overview", "training", "preview", "lineage", "files", "manifest"] as const;
export type ArtifactTab = (typeof ARTIFACT_TABS)[number];

export interface ArtifactSearch {
  tab?: ArtifactTab;
  /** The file whose preview is shown. */
  path?: string;
}

export const readArtifactSearch = (search: Search): ArtifactSearch =>
  given({ tab: readOneOf(search, "tab", ARTIFACT_TABS), path: readText(search, "path") });
