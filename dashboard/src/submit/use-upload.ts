import type { Dataset } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useSigned } from "../api/context";
import { type UploadProgress, uploadFile } from "./upload-file";
import { useIdempotencyKey } from "./use-submission";

/** Uploads one file at a time. Closing the dialog cancels the upload. */
export function useUpload(onDone: (dataset: Dataset) => void) {
  const { session } = useSigned();
  const queries = useQueryClient();
  const keyOf = useIdempotencyKey();
  const running = useRef<AbortController>(undefined);
  const [progress, setProgress] = useState<UploadProgress>();
  useEffect(() => () => running.current?.abort(), []);
  const mutation = useMutation({
    mutationFn: ({ file, name }: { file: File; name: string }) => {
      running.current?.abort();
      running.current = new AbortController();
      return uploadFile({
        file,
        name,
        apiKey: session.key,
        idempotencyKey: keyOf([name, file.name, file.size, file.lastModified].join("\n")),
        signal: running.current.signal,
        onProgress: setProgress,
      });
    },
    onSuccess: (dataset) => {
      void queries.invalidateQueries({ queryKey: ["artifacts"] });
      onDone(dataset);
    },
    onSettled: () => setProgress(undefined),
  });
  return { ...mutation, progress };
}
