import { useEffect, useState } from "react";
import { readFromTab, writeToTab } from "../api/tab-storage";
import { Button } from "../ui/button";
import { Notice } from "../ui/error-banner";
import { Page } from "../ui/page";

const RELOADED = "forge.reloaded";
/** Minimum time between two automatic reloads. */
const MIN_BETWEEN_MS = 60_000;
const RETRY_MS = 5_000;

/**
 * Shown when a page's code is gone after an upgrade, or Forge is down. Reloads the page as soon as
 * Forge answers.
 */
export function CodeMissing() {
  const [isStuck, setStuck] = useState(false);
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const checkServer = async (): Promise<void> => {
      const isUp = await answers(ended.signal);
      if (ended.signal.aborted) return;
      if (!isUp) timer = setTimeout(checkServer, RETRY_MS);
      else if (mayReload()) location.reload();
      else setStuck(true);
    };
    void checkServer();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, []);
  return (
    <Page title="Not loaded">
      <Notice
        tone="danger"
        action={
          <Button size="small" onClick={() => location.reload()}>
            Load it again
          </Button>
        }
      >
        <strong>This page could not be loaded.</strong>{" "}
        {isStuck
          ? "Forge was upgraded, or a file of it is missing. If loading again does not help, tell your administrator."
          : "Forge can't be reached. The page is loaded as soon as it answers."}
      </Notice>
    </Page>
  );
}

const answers = async (signal: AbortSignal): Promise<boolean> => {
  try {
    const options: RequestInit = { signal, cache: "no-store", credentials: "omit" };
    return (await fetch(import.meta.env.BASE_URL, options)).ok;
  } catch {
    return false;
  }
};

/**
 * Prevents a reload loop. Returns false if the last reload was less than a minute ago, or if the
 * time of this reload can't be stored.
 */
function mayReload(): boolean {
  const before = Number(readFromTab(RELOADED));
  return Date.now() - before >= MIN_BETWEEN_MS && writeToTab(RELOADED, String(Date.now()));
}
