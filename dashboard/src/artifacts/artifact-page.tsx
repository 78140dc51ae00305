import type { Artifact } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { GitCompare } from "lucide-react";
import { useForge } from "../api/context";
import { tablesOf } from "../submit/artifact-source";
import { buttonClass } from "../ui/button";
import { DetailHeading, NotLoaded } from "../ui/detail";
import { Notice } from "../ui/error-banner";
import { Json } from "../ui/json";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { ArtifactFacts } from "./artifact-facts";
import { DeleteArtifact } from "./delete-artifact";
import { Files } from "./files";
import { Lineage } from "./lineage";
import { Origin } from "./origin";
import { Preview } from "./preview";
import { type ArtifactSearch, type ArtifactTab, kindName } from "./search";
import { Training } from "./training";

const route = getRouteApi("/artifacts/$artifactId");

export function ArtifactPage() {
  const { artifactId } = route.useParams();
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["artifacts", "one", artifactId],
    queryFn: ({ signal }) => forge.artifacts.get(artifactId, { signal }),
  });
  const title = data ? kindName(data.kind) : "Artifact";
  return (
    <Page
      title={data?.name ?? title}
      above={<Link to="/artifacts">Artifacts</Link>}
      heading={<DetailHeading title={data?.name ?? title} id={artifactId} />}
      actions={
        data && (
          <>
            <Link to="/artifacts/compare" search={{ a: artifactId }} className={buttonClass()}>
              <GitCompare size={14} />
              Compare
            </Link>
            <DeleteArtifact artifact={data} />
          </>
        )
      }
    >
      {(error || !data) && <NotLoaded thing="artifact" error={error} onRetry={refetch} />}
      {data && <Loaded artifact={data} />}
    </Page>
  );
}

function Loaded({ artifact }: { artifact: Artifact }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { manifest } = artifact;
  const change = (next: ArtifactSearch): void =>
    void navigate({
      to: "/artifacts/$artifactId",
      params: { artifactId: artifact.artifact_id },
      search: { ...search, ...next },
      replace: true,
      // By default, the router would scroll the page to the position saved for this path.
      resetScroll: false,
    });
  const tables = tablesOf(artifact);
  return (
    <>
      {artifact.deleted_at && (
        <Notice tone="warn">
          <strong>Its files are deleted.</strong> Its entry and its manifest stay, because others
          may have been made from it.
        </Notice>
      )}
      <Origin artifact={artifact} />
      <Tabs<ArtifactTab>
        value={search.tab ?? "overview"}
        onChange={(tab) => change({ tab })}
        tabs={[
          { id: "overview", title: "Overview", content: <ArtifactFacts artifact={artifact} /> },
          manifest.artifact_type === "checkpoint" && {
            id: "training",
            title: "Training",
            content: <Training artifact={artifact} />,
          },
          tables.length > 0 &&
            !artifact.deleted_at && {
              id: "preview",
              title: "Preview",
              content: (
                <Preview
                  artifactId={artifact.artifact_id}
                  paths={tables}
                  path={search.path}
                  onPath={(path) => change({ path })}
                />
              ),
            },
          {
            id: "lineage",
            title: "Lineage",
            content: <Lineage artifactId={artifact.artifact_id} />,
          },
          {
            id: "files",
            title: "Files",
            count: manifest.files.length,
            content: <Files artifact={artifact} />,
          },
          {
            id: "manifest",
            title: "Manifest",
            content: <Json value={manifest} label="the manifest" isWhole />,
          },
        ]}
      />
    </>
  );
}
