import { platform } from "#platform";
import { ForgeError } from "./errors.ts";
import { requireCount, requirePositive } from "./limits.ts";
import { objectOf, parseJson } from "./retry-policy.ts";

export interface ForgeOptions {
  /** Default: `SERVICE_API_KEY`, else the key of the local stack. */
  apiKey?: string | undefined;
  /** Default: `SERVICE_BASE_URL`, else the address of the local stack. */
  baseUrl?: string | undefined;
  /** Sends the key as `Authorization: Bearer` instead of `X-Service-Api-Key`. Default: false. */
  bearer?: boolean | undefined;
  /** Maximum time without data from the server, in milliseconds. Default: 30,000. */
  timeoutMs?: number | undefined;
  /** Maximum consecutive retries after transient failures. Default: 4. */
  maxRetries?: number | undefined;
  /** Replaces the global fetch. */
  fetch?: typeof fetch | undefined;
  /** Called once if the server requires a newer version of this SDK. Default: console.warn. */
  onWarning?: ((message: string) => void) | undefined;
}

/** The connection settings of a client. */
export type Settings = { readonly [Name in keyof ForgeOptions]-?: NonNullable<ForgeOptions[Name]> };

/**
 * Takes each value from the options, else the environment, else the local stack's stack.json.
 *
 * Throws ForgeError for a missing or invalid value. The error names the value's option or
 * environment variable, and never contains the key.
 */
export function settingsOf(options: ForgeOptions): Settings {
  const { env } = platform;
  let stack: Record<string, unknown> | undefined;
  const ofStack = (name: string): unknown => {
    stack ??= objectOf(parseJson(platform.readStackFile() ?? "")) ?? {};
    return stack[name];
  };
  const ownKey = options.apiKey || env.SERVICE_API_KEY;
  // Security: someone else may have written the stack.json in the working directory. The user's own
  // key is sent to the address in that file only if the address belongs to this machine.
  const localUrl = () =>
    ownKey && !isLoopback(ofStack("api_url")) ? undefined : ofStack("api_url");
  const baseUrl = options.baseUrl || env.SERVICE_BASE_URL || localUrl();
  // The local stack's key is sent to the local stack only.
  const localKey = () =>
    isSame(baseUrl, ofStack("api_url")) ? ofStack("user_api_key") : undefined;
  const apiKey = ownKey || localKey();
  const { bearer = false, timeoutMs = 30_000, maxRetries = 4 } = options;
  requirePositive("timeoutMs", timeoutMs);
  requireCount("maxRetries", maxRetries);
  return {
    baseUrl: checkedUrl(baseUrl),
    apiKey: checkedKey(apiKey),
    bearer,
    timeoutMs,
    maxRetries,
    fetch: options.fetch ?? fetch,
    onWarning: once(options.onWarning ?? ((message) => console.warn(message))),
  };
}

const isSame = (one: unknown, other: unknown): boolean =>
  String(one).replace(/(?<!\/)\/+$/, "") === String(other).replace(/(?<!\/)\/+$/, "");

/** Whether an address is this machine's own. */
function isLoopback(value: unknown): boolean {
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(value).hostname);
}

/** Returns a function that warns only once. Clients made by `withOptions` share the function. */
function once(warn: (message: string) => void): (message: string) => void {
  let hasWarned = false;
  return (message) => {
    if (!hasWarned) warn(message);
    hasWarned = true;
  };
}

function checkedUrl(value: unknown): string {
  const text = required(value, "baseUrl", "SERVICE_BASE_URL");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isAddress = url && /^https?:$/.test(url.protocol) && /^https?:\/\//i.test(text);
  // Error messages contain the address, so it must not contain credentials.
  if (!isAddress || url.username || url.password || /[\s?#]/.test(text)) {
    throw new ForgeError("SERVICE_BASE_URL must be an address such as https://forge.example.com");
  }
  return text.replace(/(?<!\/)\/+$/, "");
}

/** Checks the key here: fetch's error for an invalid header value would contain the key. */
function checkedKey(value: unknown): string {
  const key = required(value, "apiKey", "SERVICE_API_KEY");
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new ForgeError("SERVICE_API_KEY is not a key: it has spaces or non-ASCII characters");
}

function required(value: unknown, option: string, variable: string): string {
  if (typeof value === "string" && value) return value;
  throw new ForgeError(
    `${option} is not given, ${variable} is not set, and no local stack runs there`,
  );
}
