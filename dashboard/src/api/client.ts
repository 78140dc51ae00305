import { Forge } from "@forge/sdk";

const TIMEOUT_MS = 20_000;

/** A client for this origin. Pages ask again by themselves, so it retries once only. */
export function createClient(apiKey: string): Forge {
  return new Forge({
    baseUrl: location.origin,
    apiKey,
    bearer: true,
    timeoutMs: TIMEOUT_MS,
    maxRetries: 1,
    // Nothing ambient goes along, and the browser keeps no copy of a tenant's data.
    fetch: (input, init) => fetch(input, { ...init, credentials: "omit", cache: "no-store" }),
  });
}
