import { Forge } from "@forge/sdk";

const TIMEOUT_MS = 20_000;

/** A client for this origin. Pages ask again by themselves, so it retries once only. */
export function createClient(apiKey: string): Forge {
  return new Forge({
    baseUrl: location.origin,
    apiKey,
    timeoutMs: TIMEOUT_MS,
    maxRetries: 1,
    fetch: bearerFetch,
  });
}

/** The specification has the dashboard send `Authorization: Bearer`; the SDK sends its own header. */
const bearerFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  const key = headers.get("x-service-api-key");
  headers.delete("x-service-api-key");
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  return fetch(input, { ...init, headers, credentials: "omit", cache: "no-store" });
};
