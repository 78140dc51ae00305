import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { IdText } from "./copy";

interface Props {
  id: string;
  /** The link's content. Default: the id. */
  children?: ReactNode;
}

export const JobLink = ({ id, children = <IdText id={id} /> }: Props) => (
  <Link to="/jobs/$jobId" params={{ jobId: id }}>
    {children}
  </Link>
);

export const ArtifactLink = ({ id, children = <IdText id={id} /> }: Props) => (
  <Link to="/artifacts/$artifactId" params={{ artifactId: id }}>
    {children}
  </Link>
);

/** Shows the whole id of a worker, because this id is a name that the user chose. */
export const WorkerLink = ({ id }: { id: string }) => (
  <Link to="/workers/$workerId" params={{ workerId: id }}>
    {id}
  </Link>
);
