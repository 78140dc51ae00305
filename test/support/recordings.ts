import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { bytesOf, close, type Exchange, listen } from "./exchanges";
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
  const server = createServer((request, reply) => {
    request.resume();
    if (request.url === "/-/step") {
      step += 1;
      asked.clear();
      reply.end();
      return;
    }
    const path = decodeURIComponent(new URL(request.url ?? "", "http://forge").pathname);
    const place = `${request.method} ${path}`;
    const answers = answersOf(recorded[step] ?? [], place);
    const times = asked.get(place) ?? 0;
    asked.set(place, times + 1);
    // Who asks for as long as it takes, may ask more often than somebody did then.
    const answer = steps[step]?.polls ? (answers[times] ?? answers.at(-1)) : answers[times];
    if (!answer) {
      reply.writeHead(599).end(`nobody has asked ${place} so often in step ${step + 1}`);
      return;
    }
    const { status, headers, body } = changed(answer, path);
    reply.writeHead(status, headers).end(bytesOf(body));
  });
  const url = await listen(server);
  return { url, stepUrl: `${url}/-/step`, close: () => close(server) };
}

const answersOf = (exchanges: Exchange[], place: string): Exchange["answer"][] =>
  exchanges
    .filter(({ request }) => `${request.method} ${request.path}` === place)
    .map(({ answer }) => answer);

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
