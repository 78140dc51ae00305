import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { checkoutRoot } from "../../dev/stack/paths";
import { bytesOf, type Exchange, requestOf } from "./exchanges";
import { close, listen } from "./local-server";
import type { Scenario, Variables } from "./sdk-contract";

/** A scenario as a client and a server of one release have played it. */
export interface Recording extends Scenario {
  variables: Variables;
  /** By step. */
  recorded: Exchange[][];
}

const FOLDER = join(checkoutRoot(), "sdk", "contract", "recorded");

/** The releases that were recorded. */
export const releases = (): string[] => (existsSync(FOLDER) ? readdirSync(FOLDER).sort() : []);

export function readRecordings(release: string): Recording[] {
  return readdirSync(join(FOLDER, release)).flatMap(
    (file) => JSON.parse(readFileSync(join(FOLDER, release, file), "utf8")) as Recording[],
  );
}

/** Keeps what was played, by the file of its scenario. No key goes with it. */
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

/** The OpenAPI document is kept with its release's docs, and is larger than all the rest. */
function withoutApi(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("openapi" in value)) return value;
  return { ...value, paths: undefined, components: undefined };
}

export interface Player {
  url: string;
  stepUrl: string;
  close(): Promise<void>;
}

/** A server that answers a client as it was answered then, or as `changed` makes of it. */
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
    // Who asks for as long as it takes, may ask more often than somebody did then.
    const exchange = steps[step]?.polls ? (exchanges[times] ?? exchanges.at(-1)) : exchanges[times];
    if (!exchange) {
      reply.writeHead(501).end(`nobody has asked this in step ${step + 1}: ${place}`);
      return;
    }
    const { status, headers, body } = changed(exchange.answer, request.path);
    reply.writeHead(status, headers).end(bytesOf(body));
  });
  const url = await listen(server);
  return { url, stepUrl: `${url}/-/step`, close: () => close(server) };
}

/** Whether a server of then would take it for the same request: it knows no others. */
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

/** Where an answer lacks a field that the other has, or has another kind of value there. */
export function lacking(old: unknown, now: unknown, at = "it"): string[] {
  if (old === null || now === null) return [];
  if (Array.isArray(old)) {
    if (!Array.isArray(now)) return [`${at} is no list any more`];
    // One entry stands for all: what else there is in a list is of the day.
    return old.length > 0 && now.length > 0 ? lacking(old[0], now[0], `${at}[0]`) : [];
  }
  if (typeof old !== typeof now) return [`${at} was ${typeof old} and is ${typeof now}`];
  if (typeof old !== "object") return [];
  return Object.entries(old).flatMap(([name, value]) => {
    const found = (now as Record<string, unknown>)[name];
    return found === undefined ? [`${at}.${name} is gone`] : lacking(value, found, `${at}.${name}`);
  });
}
