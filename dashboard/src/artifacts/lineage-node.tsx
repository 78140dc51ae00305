import type { Lineage } from "@forge/sdk";
import { Link } from "@tanstack/react-router";
import type { Node, NodeProps } from "@xyflow/react";
import { Box, Cloud, Workflow } from "lucide-react";
import { memo } from "react";
import { statusMark } from "../jobs/job-state";
import { cx } from "../ui/cx";
import { WithHandles } from "../ui/graph/flow";
import { StatusMark } from "../ui/status-mark";
import styles from "./lineage-node.module.css";
import { kindName } from "./search";

export const NODE_SIZE = { width: 196, height: 56 };

type Entry = Lineage["nodes"][number];

interface LineageNodeData extends Record<string, unknown> {
  node: Entry;
  /** Whether the node is the artifact whose page shows the graph. */
  isSubject: boolean;
  direction: "LR" | "TB";
}
export type LineageNodeType = Node<LineageNodeData, "lineage">;

export const LineageNode = memo(({ data }: NodeProps<LineageNodeType>) => {
  const { node, isSubject, direction } = data;
  return (
    <WithHandles direction={direction}>
      <Target
        node={node}
        className={cx(styles.node, "nopan", styles[node.type], isSubject && styles.subject)}
      />
    </WithHandles>
  );
});

/** Shows the node as a link if the dashboard has a page for it, otherwise as plain text. */
function Target({ node, className }: { node: Entry; className: string }) {
  const content = (
    <>
      <span className={styles.head}>
        <Sign node={node} />
        <span className={styles.name}>{node.name ?? kindName(node.kind ?? node.type)}</span>
      </span>
      <code className={styles.id} title={node.id}>
        {node.id}
      </code>
    </>
  );
  if (node.type === "job") {
    return (
      <Link to="/jobs/$jobId" params={{ jobId: node.id }} className={className}>
        {content}
      </Link>
    );
  }
  if (node.type === "artifact") {
    return (
      <Link
        to="/artifacts/$artifactId"
        params={{ artifactId: node.id }}
        search={{ tab: "lineage" }}
        className={className}
      >
        {content}
      </Link>
    );
  }
  return <div className={className}>{content}</div>;
}

function Sign({ node }: { node: Entry }) {
  if (node.type === "job") return <StatusMark mark={statusMark(node.status ?? "")} />;
  const Icon = { artifact: Box, pipeline: Workflow }[node.type as string] ?? Cloud;
  return <Icon size={14} aria-hidden="true" />;
}
