import { VERSION } from "./version.ts";

export const CLIENT_HEADER = { "X-Forge-Client": `sdk-typescript/${VERSION}` };

/** Tells that the server would rather have a newer client, where an answer says so. */
export function checkVersion(headers: Headers, warn: (message: string) => void): void {
  const least = headers.get("x-forge-min-client");
  if (!least || !isOlder(VERSION, least)) return;
  const server = headers.get("x-forge-version");
  const whose = server ? `Forge ${server}` : "This Forge";
  warn(`${whose} asks for @forge/sdk ${least} or newer; this is ${VERSION}.`);
}

/** Of versions such as 1.12.0; what is none is never newer. */
function isOlder(version: string, than: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(than)];
  if (!ours || !theirs) return false;
  const at = ours.findIndex((number, n) => number !== theirs[n]);
  return at >= 0 && (ours[at] ?? 0) < (theirs[at] ?? 0);
}

const numbersOf = (version: string): number[] | undefined =>
  /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\w.])/.exec(version)?.slice(1).map(Number);
