import { createContext } from "react";

/** Stores the time of the last successful response, to show how current the data is. */
export class Freshness {
  private lastMs = Date.now();
  private readonly listeners = new Set<() => void>();

  note(): void {
    this.lastMs = Date.now();
    for (const listener of this.listeners) listener();
  }

  readonly get = (): number => this.lastMs;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

export const FreshnessContext = createContext(new Freshness());
