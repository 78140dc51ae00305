import { type Dataset, ForgeAPIError, ForgeHTTPError } from "@forge/sdk";
import { startWorker } from "../app/trusted";
import type { HashMessage } from "./hash.worker";
import workerUrl from "./hash.worker?worker&url";

export interface UploadProgress {
  step: "checksum" | "sending" | "reading";
  /** Progress of this step, from 0 to 1. */
  share: number;
}

interface Upload {
  file: File;
  name: string;
  apiKey: string;
  idempotencyKey: string;
  signal: AbortSignal;
  onProgress: (progress: UploadProgress) => void;
}

const CONTENT_TYPES: Record<string, string> = {
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  csv: "text/csv",
};

export const contentTypeOf = (fileName: string): string | undefined =>
  CONTENT_TYPES[/\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? ""];

/** Sends a file with its checksum, by XMLHttpRequest: fetch does not report upload progress. */
export async function uploadFile(upload: Upload): Promise<Dataset> {
  const { file, signal, onProgress } = upload;
  onProgress({ step: "checksum", share: 0 });
  const checksum = await sha256(file, signal, (share) => onProgress({ step: "checksum", share }));
  return await send(upload, checksum);
}

function sha256(file: File, signal: AbortSignal, onShare: (share: number) => void) {
  return new Promise<string>((resolve, reject) => {
    const worker = startWorker(workerUrl);
    const end = (act: () => void) => {
      worker.terminate();
      act();
    };
    signal.addEventListener("abort", () => end(() => reject(signal.reason)), { once: true });
    worker.onerror = () => end(() => reject(new Error("the checksum could not be computed")));
    worker.onmessage = ({ data }: MessageEvent<HashMessage>) => {
      if ("done" in data) onShare(file.size > 0 ? data.done / file.size : 1);
      else if ("hex" in data) end(() => resolve(data.hex));
      else end(() => reject(new Error(`the file could not be read: ${data.problem}`)));
    };
    worker.postMessage(file);
  });
}

function send({ file, name, apiKey, idempotencyKey, signal, onProgress }: Upload, sha: string) {
  return new Promise<Dataset>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/datasets?${new URLSearchParams({ name })}`);
    request.setRequestHeader("Authorization", `Bearer ${apiKey}`);
    request.setRequestHeader("Content-Type", contentTypeOf(file.name) ?? "");
    request.setRequestHeader("X-Checksum-Sha256", sha);
    request.setRequestHeader("Idempotency-Key", idempotencyKey);
    request.upload.onprogress = ({ loaded }) =>
      onProgress({ step: "sending", share: file.size > 0 ? loaded / file.size : 1 });
    // After the upload, the server counts the rows.
    request.upload.onload = () => onProgress({ step: "reading", share: 1 });
    request.onload = () => {
      const answer = parse(request.responseText);
      if (request.status === 201 && answer) resolve(answer as unknown as Dataset);
      else reject(refusalOf(request.status, answer));
    };
    request.onerror = () => reject(new ForgeHTTPError("the connection broke"));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.onabort = () => reject(signal.reason);
    onProgress({ step: "sending", share: 0 });
    request.send(file);
  });
}

function refusalOf(status: number, answer: Record<string, unknown> | undefined): Error {
  const error = answer?.error as
    | { code: string; message: string; param?: string; request_id?: string }
    | undefined;
  if (error?.code) return ForgeAPIError.of(status, error);
  return new ForgeHTTPError("the answer is not Forge's", { status });
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
