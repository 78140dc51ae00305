import type { Artifact, ManifestFile } from "@forge/sdk";
import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useForge } from "../api/context";
import { Button } from "../ui/button";
import { CopyButton, IdText, Snippet } from "../ui/copy";
import { saveLink } from "../ui/download";
import { Empty } from "../ui/empty";
import { Notice } from "../ui/error-banner";
import { formatBytes } from "../ui/format";
import { Stack } from "../ui/page";
import { type Column, Table } from "../ui/table";
import { toast } from "../ui/toasts";
import styles from "./files.module.css";

export function Files({ artifact }: { artifact: Artifact }) {
  const { files } = artifact.manifest;
  const columns: readonly Column<ManifestFile>[] = [
    { id: "path", title: "File", cell: ({ path }) => <span title={path}>{path}</span> },
    {
      id: "sha",
      title: "SHA-256",
      hideBelow: "tablet",
      cell: ({ sha256 }) => (
        <span className={styles.sha}>
          <IdText id={sha256} />
          <CopyButton text={sha256} label="Copy the checksum" />
        </span>
      ),
    },
    {
      id: "size",
      title: "Size",
      width: "84px",
      align: "right",
      cell: ({ size_bytes }) => formatBytes(size_bytes),
    },
    {
      id: "get",
      title: "",
      width: "112px",
      align: "right",
      cell: (file) => <DownloadFile artifactId={artifact.artifact_id} file={file} />,
    },
  ];
  return (
    <Stack gap={12}>
      {artifact.deleted_at ? (
        <Notice tone="warn">The files are deleted; their names and checksums stay.</Notice>
      ) : (
        <Snippet code={`forge artifacts pull ${artifact.artifact_id} .`} label="Copy the command" />
      )}
      <Table
        label="Files"
        columns={artifact.deleted_at ? columns.slice(0, -1) : columns}
        rows={files}
        rowId={({ path }) => path}
        empty={<Empty title="Its manifest names no file." />}
      />
    </Stack>
  );
}

/**
 * Downloads the file through a link that is valid for a minute. The browser saves the file itself,
 * so the page does not hold it in memory, and its size does not matter.
 */
function DownloadFile({ artifactId, file }: { artifactId: string; file: ManifestFile }) {
  const forge = useForge();
  const download = useMutation({
    mutationFn: () => forge.artifacts.downloadTicket(artifactId, file.path),
    onSuccess: ({ url }) => saveLink(url, file.path.split("/").at(-1) ?? file.path),
    onError: (error) => toast.refused(`${file.path} was not saved`, error),
  });
  return (
    <Button
      size="small"
      icon={<Download size={13} />}
      busy={download.isPending}
      aria-label={`Download ${file.path}`}
      onClick={() => download.mutate()}
    >
      Download
    </Button>
  );
}
