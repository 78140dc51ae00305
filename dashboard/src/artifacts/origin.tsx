import type { Artifact } from "@forge/sdk";
import { CircleCheck, CircleHelp } from "lucide-react";
import type { ReactNode } from "react";
import { Notice } from "../ui/error-banner";
import { ArtifactLink, JobLink, WorkerLink } from "../ui/links";
import { Time } from "../ui/time";
import styles from "./origin.module.css";

/** Says where an artifact came from, and whether Forge has read its files. */
export function Origin({ artifact }: { artifact: Artifact }) {
  const { manifest, source_artifacts: sources } = artifact;
  return (
    <Notice
      tone={manifest.verified ? "ok" : "neutral"}
      icon={manifest.verified ? <CircleCheck size={15} /> : <CircleHelp size={15} />}
    >
      <span className={styles.sentence}>
        <strong>
          {manifest.job_id ? (
            <>
              Made by job <JobLink id={manifest.job_id} />
            </>
          ) : (
            "Uploaded"
          )}
        </strong>
        {manifest.worker_id && (
          <>
            {" on "}
            <WorkerLink id={manifest.worker_id} />
          </>
        )}
        {sources.length > 0 && <> from {list(sources)}</>}
        {", with the key "}
        <bdi>{artifact.created_by}</bdi>, <Time at={artifact.created_at} />.{" "}
        <span className="quiet">
          {manifest.verified
            ? "Forge has seen its files and measured them itself."
            : "Forge could not read its files: the manifest has what the worker said."}
        </span>
      </span>
    </Notice>
  );
}

function list(ids: readonly string[]): ReactNode[] {
  return ids.flatMap((id, at) => [
    at > 0 && (at === ids.length - 1 ? " and " : ", "),
    <ArtifactLink key={id} id={id} />,
  ]);
}
