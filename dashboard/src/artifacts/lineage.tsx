import type { Lineage as LineageAnswer } from "@forge/sdk";
import { useQuery } from "@tanstack/react-query";
import type { Edge } from "@xyflow/react";
import { useMemo, useState } from "react";
import { useForge } from "../api/context";
import { Button } from "../ui/button";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { formatNumber, plural } from "../ui/format";
import { Flow, PADDING } from "../ui/graph/flow";
import { useIsNarrow } from "../ui/graph/use-is-narrow";
import { useLayout } from "../ui/graph/use-layout";
import { SkeletonLines } from "../ui/skeleton";
import styles from "./lineage.module.css";
import { LineageNode, type LineageNodeType, NODE_SIZE } from "./lineage-node";
import { nearest } from "./nearest";

const NODE_TYPES = { lineage: LineageNode };
const MIN_HEIGHT = 140;
const MAX_HEIGHT = 560;
/** The number of nodes shown at first. A larger graph is hard to read and slow to lay out. */
const SHOWN = 30;

/** What an artifact was made from, and what was made from it. */
export function Lineage({ artifactId }: { artifactId: string }) {
  const forge = useForge();
  const { data, error, refetch } = useQuery({
    queryKey: ["artifacts", "lineage", artifactId],
    queryFn: ({ signal }) => forge.artifacts.lineage(artifactId, { signal }),
  });
  if (error && !data) {
    return <ErrorBanner what="The lineage could not be loaded" error={error} onRetry={refetch} />;
  }
  return data ? <Whole lineage={data} /> : <SkeletonLines count={6} />;
}

function Whole({ lineage }: { lineage: LineageAnswer }) {
  const [isWhole, setWhole] = useState(false);
  const shown = useMemo(() => (isWhole ? lineage : nearest(lineage, SHOWN)), [lineage, isWhole]);
  const total = lineage.nodes.length;
  return (
    <>
      {lineage.truncated && (
        <Notice tone="neutral">
          It is incomplete: there are over a thousand artifacts on one side.
        </Notice>
      )}
      <p className={styles.summary}>{summaryOf(lineage)}</p>
      {shown !== lineage && (
        <Notice
          tone="neutral"
          action={
            <Button size="small" onClick={() => setWhole(true)}>
              {`Show all ${formatNumber(total)}`}
            </Button>
          }
        >
          {`The graph shows the ${SHOWN} that are nearest to this artifact.`}
        </Notice>
      )}
      <Graph lineage={shown} />
    </>
  );
}

function Graph({ lineage }: { lineage: LineageAnswer }) {
  const isNarrow = useIsNarrow();
  const direction = isNarrow ? "TB" : "LR";
  const names = lineage.nodes.map(({ id }) => id);
  const known = new Set(names);
  const links = lineage.edges.filter(({ from, to }) => known.has(from) && known.has(to));
  const layout = useLayout({
    names,
    edges: links.map(({ from, to }): [string, string] => [from, to]),
    direction,
    size: NODE_SIZE,
  });
  if (layout?.positions.length !== names.length) return <SkeletonLines count={6} />;
  const nodes = lineage.nodes.map(
    (node, at): LineageNodeType => ({
      id: node.id,
      type: "lineage",
      position: layout.positions[at] ?? { x: 0, y: 0 },
      ...NODE_SIZE,
      focusable: false,
      data: { node, isSubject: node.id === lineage.artifact_id, direction },
    }),
  );
  const edges = links.map(
    ({ from, to }): Edge => ({ id: `${from} ${to}`, source: from, target: to, focusable: false }),
  );
  const height = Math.min(Math.max(layout.height + 2 * PADDING, MIN_HEIGHT), MAX_HEIGHT);
  return (
    <Flow
      label="Graph of the lineage"
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      layout={layout}
      height={height}
      isNarrow={isNarrow}
      isPanned={!isNarrow}
      focus={lineage.artifact_id}
    />
  );
}

function summaryOf({ nodes }: LineageAnswer): string {
  const count = (type: string): number => nodes.filter((node) => node.type === type).length;
  return [
    plural(count("artifact"), "artifact"),
    plural(count("job"), "job"),
    ...(count("pipeline") > 0 ? [plural(count("pipeline"), "pipeline")] : []),
    ...(count("external") > 0 ? [`${plural(count("external"), "source")} from elsewhere`] : []),
  ].join(", ");
}
