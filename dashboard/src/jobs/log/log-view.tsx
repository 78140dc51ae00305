import { ArrowDown, ArrowDownToLine, ArrowUp, ArrowUpToLine, Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Button, IconButton } from "../../ui/button";
import { saveFile } from "../../ui/download";
import { Notice } from "../../ui/error-banner";
import { Checkbox, Input } from "../../ui/field";
import { formatBytes, formatNumber, plural } from "../../ui/format";
import { useHotkeys } from "../../ui/hotkeys";
import { Stack } from "../../ui/page";
import { SkeletonLines } from "../../ui/skeleton";
import { LogLines, type LogPosition } from "./log-lines";
import { readLogQuery, withoutAttempt } from "./log-query";
import styles from "./log-view.module.css";
import type { LogState } from "./protocol";
import { useFound, useLog } from "./use-log";

interface Props {
  jobId: string;
  attempt: number;
  /** The job has not ended, so more lines may arrive. */
  isLive: boolean;
  query: string;
  line: number | undefined;
  /** Shown while there are no lines. */
  emptyText: string;
  onChange: (change: { q?: string; line?: number }) => void;
}

/**
 * Shows a job's log while it grows. The user can search the whole log and download it. The page
 * stays responsive with a log of 64 MiB.
 */
export function LogView({ jobId, attempt, isLive, query, line, emptyText, onChange }: Props) {
  const { state, client } = useLog(jobId, attempt, isLive);
  // Removes `attempt:…`: the caller has parsed it and passes it as `attempt`.
  const searched = withoutAttempt(query);
  const { text } = readLogQuery(searched);
  const found = useFound(client, state, searched);
  const [isFollowing, setFollowing] = useState(line === undefined);
  const [showsMatchesOnly, setMatchesOnly] = useState(false);
  const position = useRef<LogPosition>(null);
  useHotkeys([
    { keys: "f", what: "Follow the log", run: () => setFollowing(!isFollowing) },
    { keys: "G", what: "To the log's end", run: () => position.current?.toEnd() },
  ]);
  const hasLines = state !== undefined && state.lines > 0 && !state.isTail;
  const isSearched = searched !== "";
  useEffect(() => {
    if (line !== undefined && hasLines) position.current?.show(line - 1);
  }, [line, hasLines]);
  const goTo = (index: number): void => {
    const target = found?.lines.at(index);
    if (target === undefined) return;
    setFollowing(false);
    onChange({ line: target + 1 });
  };
  const step = (by: number): void => {
    const at = found?.lines.indexOf((line ?? 0) - 1) ?? -1;
    goTo(at === -1 ? (by > 0 ? 0 : -1) : (at + by) % (found?.lines.length ?? 1));
  };
  const download = async (): Promise<void> => {
    if (!client) return;
    const { bytes } = await client.bytes();
    saveFile(new Blob([bytes], { type: "text/plain" }), `${jobId}-attempt-${attempt}.log`);
  };
  return (
    <Stack gap={8}>
      <div className={styles.tools}>
        <Input
          data-filter
          className={styles.search}
          type="search"
          aria-label="Search the log"
          placeholder="Text, /expression/, level:error"
          value={query}
          onChange={({ target }) => onChange({ q: target.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
            if (event.key !== "Escape") return;
            // Escape leaves the input. By default, the browser would also clear the text.
            event.preventDefault();
            event.currentTarget.blur();
          }}
        />
        {isSearched && (
          <>
            <span className={styles.count} role="status">
              {found === undefined
                ? "Searching …"
                : (found.error ??
                  `${plural(found.lines.length, "line")}${found.isCut ? " and more" : ""}`)}
            </span>
            <IconButton size="small" label="Match before" onClick={() => step(-1)}>
              <ArrowUp size={14} />
            </IconButton>
            <IconButton size="small" label="Next match" onClick={() => step(1)}>
              <ArrowDown size={14} />
            </IconButton>
            <Checkbox
              label="Only matches"
              checked={showsMatchesOnly}
              onChange={({ target }) => setMatchesOnly(target.checked)}
            />
          </>
        )}
        <span className={styles.space} />
        {state && <span className={styles.size}>{sizeText(state)}</span>}
        <IconButton
          size="small"
          label="To the top"
          onClick={() => {
            setFollowing(false);
            position.current?.toTop();
          }}
        >
          <ArrowUpToLine size={14} />
        </IconButton>
        <IconButton size="small" label="To the end" onClick={() => position.current?.toEnd()}>
          <ArrowDownToLine size={14} />
        </IconButton>
        {isLive && (
          <Button
            size="small"
            aria-pressed={isFollowing}
            hotkey="f"
            onClick={() => setFollowing(!isFollowing)}
          >
            {isFollowing ? "Following" : "Follow"}
          </Button>
        )}
        <IconButton size="small" label="Download the log" disabled={!hasLines} onClick={download}>
          <Download size={14} />
        </IconButton>
      </div>
      {state?.error && (
        <Notice tone="warn">{`${state.error}. It is tried again by itself.`}</Notice>
      )}
      {!client || !state ? (
        <SkeletonLines count={6} />
      ) : state.lines === 0 ? (
        <p className={styles.empty}>{emptyText}</p>
      ) : (
        <LogLines
          client={client}
          state={state}
          query={found?.error ? "" : text}
          only={showsMatchesOnly && isSearched ? found?.lines : undefined}
          marked={line}
          isFollowing={isFollowing}
          onScrolledUp={() => setFollowing(false)}
          onMark={(marked) => onChange({ line: marked })}
          position={position}
        />
      )}
    </Stack>
  );
}

const sizeText = ({ lines, loaded, total, isTail }: LogState): string =>
  isTail || loaded < total
    ? `${formatBytes(loaded)} of ${formatBytes(total)}`
    : `${formatNumber(lines)} lines, ${formatBytes(total)}`;
