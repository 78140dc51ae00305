import type { Artifact } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useForge } from "../api/context";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialog";
import { formatBytes } from "../ui/format";
import { toast } from "../ui/toasts";

export function DeleteArtifact({ artifact }: { artifact: Artifact }) {
  const forge = useForge();
  const queries = useQueryClient();
  const [isConfirming, setConfirming] = useState(false);
  const remove = useMutation({
    mutationFn: () => forge.artifacts.delete(artifact.artifact_id),
    onSuccess: () => toast.ok("The files are deleted. The manifest stays."),
    onSettled: () => queries.invalidateQueries({ queryKey: ["artifacts"] }),
  });
  if (artifact.deleted_at || artifact.kind === "deployment") return null;
  return (
    <>
      <Button kind="danger" onClick={() => setConfirming(true)}>
        Delete files
      </Button>
      <ConfirmDialog
        open={isConfirming}
        onClose={() => setConfirming(false)}
        title="Delete the files of this artifact?"
        action="Delete the files"
        change={remove}
        refused="Nothing was deleted"
        onConfirm={(close) => remove.mutate(undefined, { onSuccess: close })}
      >
        <p>
          {formatBytes(artifact.size_bytes)} are deleted for good. The entry and the manifest stay.
        </p>
      </ConfirmDialog>
    </>
  );
}
