import type { Dataset } from "@forge/sdk";
import { Upload } from "lucide-react";
import { type DragEvent, useId, useState } from "react";
import { describeError } from "../api/errors";
import { Meter } from "../ui/bars";
import { cx } from "../ui/cx";
import { Dialog, DialogForm } from "../ui/dialog";
import { ErrorBanner, Notice } from "../ui/error-banner";
import { TextField } from "../ui/field";
import { formatBytes, formatPercent } from "../ui/format";
import styles from "./upload-dialog.module.css";
import { contentTypeOf, type UploadProgress } from "./upload-file";
import { useUpload } from "./use-upload";

interface Props {
  open: boolean;
  onClose: () => void;
  onDone: (dataset: Dataset) => void;
}

export function UploadDialog({ open, onClose, onDone }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title="Upload a dataset">
      <UploadForm onClose={onClose} onDone={onDone} />
    </Dialog>
  );
}

const MAX_NAME = 256;

const STEPS: Record<UploadProgress["step"], string> = {
  checksum: "Computing the checksum",
  sending: "Sending",
  reading: "Forge reads the rows",
};

function UploadForm({ onClose, onDone }: Omit<Props, "open">) {
  const [file, setFile] = useState<File>();
  const [name, setName] = useState("");
  const upload = useUpload(onDone);
  const isOfKnownKind = !file || contentTypeOf(file.name) !== undefined;
  const isTooLong = name.trim().length > MAX_NAME;
  const choose = (chosen: File | undefined): void => {
    if (!chosen) return;
    upload.reset();
    setFile(chosen);
    setName(chosen.name.replace(/\.[^.]*$/, ""));
  };
  const submit = (): void => {
    if (file && !isTooLong) upload.mutate({ file, name: name.trim() || file.name });
  };
  const { progress } = upload;
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action={upload.isError ? "Try again" : "Upload"}
      busy={upload.isPending}
      disabled={!file || !isOfKnownKind}
    >
      <DropZone file={file} onFile={choose} disabled={upload.isPending} />
      {!isOfKnownKind && (
        <Notice tone="danger">
          Forge reads .jsonl, .csv and .parquet. {file?.name} is none of these.
        </Notice>
      )}
      {file && isOfKnownKind && (
        <TextField
          label="Name"
          hint={`What the dataset is called in lists. At most ${MAX_NAME} characters.`}
          error={
            isTooLong
              ? `At most ${MAX_NAME} characters: these are ${name.trim().length}.`
              : undefined
          }
          value={name}
          disabled={upload.isPending}
          onChange={setName}
        />
      )}
      {progress && (
        <div className={styles.progress} role="status">
          <span>{STEPS[progress.step]}</span>
          <span>{progress.step === "reading" ? "…" : formatPercent(progress.share)}</span>
          <Meter share={progress.share} label={STEPS[progress.step]} />
        </div>
      )}
      {upload.error && <Refused error={upload.error} />}
    </DialogForm>
  );
}

function Refused({ error }: { error: unknown }) {
  const what =
    describeError(error).code === "checksum_mismatch"
      ? "The bytes that arrived are not the bytes of your file"
      : "The dataset was not stored";
  return <ErrorBanner what={what} error={error} />;
}

interface ZoneProps {
  file: File | undefined;
  onFile: (file: File | undefined) => void;
  disabled: boolean;
}

function DropZone({ file, onFile, disabled }: ZoneProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const drag = (over: boolean) => (event: DragEvent) => {
    event.preventDefault();
    setOver(over);
  };
  return (
    <div className={styles.zone}>
      <input
        id={id}
        type="file"
        className="visually-hidden"
        accept=".jsonl,.ndjson,.csv,.parquet"
        disabled={disabled}
        onChange={({ target }) => onFile(target.files?.[0])}
      />
      <label
        htmlFor={id}
        className={cx(styles.target, isOver && styles.over)}
        onDragEnter={drag(true)}
        onDragOver={drag(true)}
        onDragLeave={drag(false)}
        onDrop={(event) => {
          drag(false)(event);
          if (!disabled) onFile(event.dataTransfer.files[0]);
        }}
      >
        <Upload size={18} />
        {file ? (
          <span>
            <strong>{file.name}</strong> {formatBytes(file.size)}
          </span>
        ) : (
          <span>
            <strong>Choose a file</strong> or drop it here
          </span>
        )}
        <span className="note">JSON lines, CSV with a header, or parquet, of any size</span>
      </label>
    </div>
  );
}
