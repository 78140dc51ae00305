import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { checkoutRoot } from "../../dev/stack/paths";
import { bytesOf, type Exchange, requestOf } from "./exchanges";
import { close, listen } from "./local-server";
import type { Scenario, Variables } from "./sdk-contract";

/** A scenario as played by a client and a server of one release. */
export interface Recording extends Scenario {
  variables: Variables;
  /** The recorded exchanges of each step. */
  recorded: Exchange[][];
}

const FOLDER = join(checkoutRoot(), "sdk", "contract", "recorded");

/** The recorded releases. */
export const releases = (): string[] => (existsSync(FOLDER) ? readdirSync(FOLDER).sort() : []);

export function readRecordings(release: string): Recording[] {
  return readdirSync(join(FOLDER, release)).flatMap(
    (file) => JSON.parse(readFileSync(join(FOLDER, release, file), "utf8")) as Recording[],
  );
}

/** Stores recordings in the file of their scenario. Keys are removed. */
export function writeRecordings(release: string, recordings: Recording[]): void {
  const folder = join(FOLDER, release);
  mkdirSync(folder, { recursive: true });
  for (const file of new Set(recordings.map((recording) => recording.file))) {
    const ofFile = recordings.filter((recording) => recording.file === file);
    const text = JSON.stringify(ofFile, withoutApi, 1);
    const keyless = text.replace(/forge_(user|worker|admin)_[\w-]+/g, "forge_$1_recorded");
    writeFileSync(join(folder, file), `${keyless}\n`);
  }
}

/**
 * Drops the OpenAPI document from a recorded response. It is larger than everything else, and is
 * already stored in the docs of its release.
 */
function withoutApi(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("openapi" in value)) return value;
  return { ...value, paths: undefined, components: undefined };
}

export interface Player {
  url: string;
  stepUrl: string;
  close(): Promise<void>;
}

/** A server that replays the recorded responses to a client, optionally changed by `changed`. */
export async function play(
  { recorded, steps }: Recording,
  changed = (answer: Exchange["answer"], _path: string): Exchange["answer"] => answer,
): Promise<Player> {
  let step = -1;
  const asked = new Map<string, number>();
  const server = createServer(async (message, reply) => {
    const request = requestOf(message, await buffer(message));
    if (request.path === "/-/step") {
      step += 1;
      asked.clear();
      reply.end();
      return;
    }
    const place = `${request.method} ${request.path}`;
    const exchanges = (recorded[step] ?? []).filter((then) => isOf(then, request));
    const times = asked.get(place) ?? 0;
    asked.set(place, times + 1);
    // A polling client may poll more often than in the recording.
    const exchange = steps[step]?.polls ? (exchanges[times] ?? exchanges.at(-1)) : exchanges[times];
    if (!exchange) {
      reply.writeHead(501).end(`no recorded request in step ${step + 1}: ${place}`);
      return;
    }
    const { status, headers, body } = changed(exchange.answer, request.path);
    reply.writeHead(status, headers).end(bytesOf(body));
  });
  const url = await listen(server);
  return { url, stepUrl: `${url}/-/step`, close: () => close(server) };
}

/**
 * True if a server of the recording's release would treat the new request (parameter `now`) like
 * the recorded request.
 */
const isOf = ({ request: then }: Exchange, now: Exchange["request"]): boolean =>
  isDeepStrictEqual(essenceOf(then), essenceOf(now));

const essenceOf = ({ method, path, query, headers, body }: Exchange["request"]): unknown => ({
  method,
  path,
  query,
  body,
  kind: body === undefined ? "" : headers["content-type"],
  repeatable: "idempotency-key" in headers,
});

/**
 * Compares a recorded value (`old`) with the value that today's server returns (`now`). Lists each
 * field of the recorded value that is missing today or has another type.
 */
export function missingFields(old: unknown, now: unknown, at = "it"): string[] {
  if (old === null || now === null) return [];
  if (Array.isArray(old)) {
    if (!Array.isArray(now)) return [`${at} is no list any more`];
    // Compare only the first entries: the number of entries may differ, for example on another day.
    return old.length > 0 && now.length > 0 ? missingFields(old[0], now[0], `${at}[0]`) : [];
  }
  if (typeof old !== typeof now) return [`${at} was ${typeof old} and is ${typeof now}`];
  if (typeof old !== "object") return [];
  return Object.entries(old).flatMap(([name, value]) => {
    const found = (now as Record<string, unknown>)[name];
    return found === undefined
      ? [`${at}.${name} is gone`]
      : missingFields(value, found, `${at}.${name}`);
  });
}
