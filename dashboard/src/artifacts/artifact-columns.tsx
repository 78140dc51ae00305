import type { Artifact } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import { IdText } from "../ui/copy";
import type { Column } from "../ui/table";
import { Time } from "../ui/time";

/** Columns for short tables of artifacts. */
export const artifactLink = (title: string): Column<Artifact> => ({
  id: "id",
  title,
  cell: ({ artifact_id }) => (
    <Link to="/artifacts/$artifactId" params={{ artifactId: artifact_id }}>
      <IdText id={artifact_id} />
    </Link>
  ),
});

export const ARTIFACT_AGE: Column<Artifact> = {
  id: "age",
  title: "Created",
  width: "104px",
  align: "right",
  hideBelow: "phone",
  cell: ({ created_at }) => <Time at={created_at} />,
};
