import { Forge } from "@forge/sdk";

const TIMEOUT_MS = 20_000;

/** A client for this origin. Pages poll anyway, so one retry is enough. */
export function createClient(apiKey: string): Forge {
  return new Forge({
    baseUrl: location.origin,
    apiKey,
    bearer: true,
    timeoutMs: TIMEOUT_MS,
    maxRetries: 1,
    // Sends no cookies, and keeps the tenant's data out of the browser's cache.
    fetch: (input, init) => fetch(input, { ...init, credentials: "omit", cache: "no-store" }),
  });
}
