import type { Artifact } from "@forge/sdk";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { GitCompare } from "lucide-react";
import { useList } from "../api/use-list";
import { given } from "../app/search-params";
import { ARTIFACT_KINDS } from "../jobs/declared-types";
import { buttonClass } from "../ui/button";
import { ChoiceFilter } from "../ui/choice-filter";
import { IdText } from "../ui/copy";
import { cx } from "../ui/cx";
import { Empty, NothingMatches } from "../ui/empty";
import { ABSENT, formatBytes, formatNumber } from "../ui/format";
import { ListTable } from "../ui/list-table";
import { Page } from "../ui/page";
import type { Column } from "../ui/table";
import { Tag } from "../ui/tag";
import { TextFilter } from "../ui/text-filter";
import { ageColumn } from "../ui/time";
import { Toolbar } from "../ui/toolbar";
import { aboutArtifact } from "./about-artifact";
import styles from "./artifacts-page.module.css";
import { type ArtifactsSearch, kindName } from "./search";

const route = getRouteApi("/artifacts");

const COLUMNS: readonly Column<Artifact>[] = [
  {
    id: "kind",
    title: "Kind",
    width: "136px",
    hideBelow: "phone",
    cell: ({ kind }) => kindName(kind),
  },
  {
    id: "id",
    title: "Artifact",
    cell: ({ artifact_id, name, kind }) => (
      <Link
        to="/artifacts/$artifactId"
        params={{ artifactId: artifact_id }}
        className={styles.name}
      >
        <span className={cx("only-phone", styles.kind)}>{kindName(kind)}</span>
        {name ? <span title={artifact_id}>{name}</span> : <IdText id={artifact_id} />}
      </Link>
    ),
  },
  {
    id: "about",
    title: "About",
    hideBelow: "laptop",
    cell: (artifact) =>
      artifact.deleted_at ? <Tag>deleted</Tag> : aboutArtifact(artifact.manifest) || ABSENT,
  },
  {
    id: "sources",
    title: "Source jobs",
    width: "96px",
    align: "right",
    hideBelow: "tablet",
    cell: ({ source_jobs }) => formatNumber(source_jobs.length),
  },
  {
    id: "size",
    title: "Size",
    width: "84px",
    align: "right",
    hideBelow: "phone",
    cell: ({ size_bytes }) => formatBytes(size_bytes),
  },
  {
    id: "by",
    title: "By key",
    width: "120px",
    hideBelow: "laptop",
    cell: ({ created_by }) => created_by,
  },
  ageColumn("Created"),
];

export function ArtifactsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const list = useList(["artifacts", "list", search], (forge, pageSize) =>
    forge.artifacts.list({ ...search, pageSize }),
  );
  const change = (next: ArtifactsSearch): void =>
    void navigate({ to: "/artifacts", search: given({ ...search, ...next }), replace: true });
  const isFiltered = Object.keys(search).length > 0;
  return (
    <Page
      title="Artifacts"
      shows="all"
      actions={
        <Link to="/artifacts/compare" className={buttonClass()}>
          <GitCompare size={14} />
          Compare two
        </Link>
      }
    >
      <Toolbar>
        <TextFilter
          label="Filter by id or name"
          value={search.q ?? ""}
          onChange={(q) => change({ q })}
        />
        <ChoiceFilter
          title="Kind"
          chosen={search.kind ?? []}
          options={ARTIFACT_KINDS}
          onChange={(kind) => change({ kind })}
          show={kindName}
        />
      </Toolbar>
      <ListTable
        label="Artifacts"
        columns={COLUMNS}
        list={list}
        more="older artifacts"
        rowId={({ artifact_id }) => artifact_id}
        onOpen={({ artifact_id }) =>
          navigate({ to: "/artifacts/$artifactId", params: { artifactId: artifact_id } })
        }
        empty={isFiltered ? <NothingMatches thing="artifact" /> : <NoArtifacts />}
      />
    </Page>
  );
}

const NoArtifacts = () => (
  <Empty
    title="Artifacts of jobs and uploaded datasets appear here."
    command="forge datasets upload rows.jsonl"
  >
    Upload a table of JSON lines, CSV or parquet:
  </Empty>
);
