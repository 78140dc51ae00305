import { useSyncExternalStore } from "react";

/** The components that show an age. All share one timer, which pauses while the page is hidden. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let nowMs = Date.now();

const TICK_MS = 1_000;

function tick(): void {
  if (document.hidden) return;
  nowMs = Date.now();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    timer = setInterval(tick, TICK_MS);
    document.addEventListener("visibilitychange", tick);
    nowMs = Date.now();
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    document.removeEventListener("visibilitychange", tick);
  };
}

/**
 * Derives a value from the time. The component renders only when the value changes: an age in
 * minutes renders once a minute, although the timer ticks every second.
 */
export function useNow<T extends string | number | boolean>(derive: (nowMs: number) => T): T {
  return useSyncExternalStore(subscribe, () => derive(nowMs));
}
