import { platform } from "#platform";
import { ForgeError } from "./errors.ts";
import { requireCount, requirePositive } from "./limits.ts";
import { objectOf, parseJson } from "./retries.ts";

export interface ForgeOptions {
  /** By default `SERVICE_API_KEY`, else the local stack's. */
  apiKey?: string | undefined;
  /** By default `SERVICE_BASE_URL`, else the local stack's. */
  baseUrl?: string | undefined;
  /** Sends the key as `Authorization: Bearer` in place of `X-Service-Api-Key`: false. */
  bearer?: boolean | undefined;
  /** For so long a server may be silent, in milliseconds: 30,000. */
  timeoutMs?: number | undefined;
  /** How often in a row a request is sent again that failed by what may pass: 4. */
  maxRetries?: number | undefined;
  /** In place of the global one. */
  fetch?: typeof fetch | undefined;
  /** Is told once that this version is older than the server would like; by default console.warn. */
  onWarning?: ((message: string) => void) | undefined;
}

/** How to talk to one Forge. */
export type Settings = { readonly [Name in keyof ForgeOptions]-?: NonNullable<ForgeOptions[Name]> };

/**
 * From arguments, environment and the local stack's stack.json, in this order of weight.
 *
 * Throws ForgeError, which names the option and never tells the key.
 */
export function settingsOf(options: ForgeOptions): Settings {
  const { env } = platform;
  let stack: Record<string, unknown> | undefined;
  const ofStack = (name: string): unknown => {
    stack ??= objectOf(parseJson(platform.readStackFile() ?? "")) ?? {};
    return stack[name];
  };
  const ownKey = options.apiKey || env.SERVICE_API_KEY;
  // A stack.json may be anyone's: it does not say where to send a key that isn't its own.
  const localUrl = () =>
    ownKey && !isLoopback(ofStack("api_url")) ? undefined : ofStack("api_url");
  const baseUrl = options.baseUrl || env.SERVICE_BASE_URL || localUrl();
  // The local stack's key is for the local stack alone.
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

/** So that it is told once, also to a client's variants. */
function once(tell: (message: string) => void): (message: string) => void {
  let wasTold = false;
  return (message) => {
    if (!wasTold) tell(message);
    wasTold = true;
  };
}

function checkedUrl(value: unknown): string {
  const text = required(value, "baseUrl", "SERVICE_BASE_URL");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isAddress = url && /^https?:$/.test(url.protocol) && /^https?:\/\//i.test(text);
  // The address stands in messages: nothing secret may be in it.
  if (!isAddress || url.username || url.password || /[\s?#]/.test(text)) {
    throw new ForgeError("SERVICE_BASE_URL must be an address such as https://forge.example.com");
  }
  return text.replace(/(?<!\/)\/+$/, "");
}

/** What is no header's value would be refused by fetch, with the key in the text. */
function checkedKey(value: unknown): string {
  const key = required(value, "apiKey", "SERVICE_API_KEY");
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new ForgeError("SERVICE_API_KEY is not a key: it has spaces or characters beyond ASCII");
}

function required(value: unknown, option: string, variable: string): string {
  if (typeof value === "string" && value) return value;
  throw new ForgeError(
    `${option} is not given, ${variable} is not set, and no local stack runs there`,
  );
}
