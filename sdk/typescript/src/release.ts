import { VERSION } from "./version.ts";

export const CLIENT_HEADER = { "X-Forge-Client": `sdk-typescript/${VERSION}` };

/** Warns if the response says that the server requires a newer client. */
export function checkVersion(headers: Headers, warn: (message: string) => void): void {
  const minimum = headers.get("x-forge-min-client");
  if (!minimum || !isOlder(VERSION, minimum)) return;
  const server = headers.get("x-forge-version");
  const whose = server ? `Forge ${server}` : "This Forge";
  warn(`${whose} requires @forge/sdk ${minimum} or newer; this is ${VERSION}.`);
}

/** Whether a version is lower than another version. False if either is not of the form 1.2.3. */
function isOlder(version: string, than: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(than)];
  if (!ours || !theirs) return false;
  const at = ours.findIndex((number, n) => number !== theirs[n]);
  return at >= 0 && (ours[at] ?? 0) < (theirs[at] ?? 0);
}

const numbersOf = (version: string): number[] | undefined =>
  /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\w.])/.exec(version)?.slice(1).map(Number);
