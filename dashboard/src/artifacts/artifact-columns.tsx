import type { Artifact } from "@forge/sdk";
import { ArtifactLink } from "../ui/links";
import type { Column } from "../ui/table";
import { ageColumn } from "../ui/time";

/** The column of an artifact's id, for short tables. */
export const artifactLink = (title: string): Column<Artifact> => ({
  id: "id",
  title,
  cell: ({ artifact_id }) => <ArtifactLink id={artifact_id} />,
});

export const ARTIFACT_AGE = ageColumn<Artifact>("Created", { hideBelow: "phone" });
