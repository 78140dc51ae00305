/**
 * Compatibility with earlier releases, tested with exchanges recorded from them. The current server
 * must answer the recorded requests, and the current clients must accept the recorded responses.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { MIN_CLIENT_RELEASE } from "../../platform/release";
import { bytesOf, type Exchange } from "../support/exchanges";
import { filledIn } from "../support/expectations";
import { type Forge, startForge } from "../support/forge";
import {
  missingFields,
  play,
  type Recording,
  readRecordings,
  releases,
} from "../support/recordings";
import { compareScenario, kept, type Variables } from "../support/sdk-contract";
import { SdkFleet, type Tenant } from "../support/sdk-fleet";
import { DIFFERENT_CLIENTS, RUNNERS } from "../support/sdk-runners";
import { oneFormOf } from "../support/slow";

test("the oldest supported release was recorded", () => {
  expect(releases()).toContain(MIN_CLIENT_RELEASE);
});

describe.each(releases())("requests of %s", (release) => {
  let forge: Forge;
  let fleet: SdkFleet;

  beforeAll(async () => {
    forge = await startForge({ FORGE_PUBLIC_URL: "" });
    fleet = await SdkFleet.start(forge);
  }, 120_000);

  afterAll(async () => {
    await fleet?.stop();
    await forge?.stop();
  });

  const recordings = readRecordings(release);

  test.each(recordings.map((recording, n) => [recording.file, recording.name, n] as const))(
    "get every field of the recorded response: %s: %s",
    async (_file, _name, n) => {
      const recording = recordings[n];
      if (!recording) throw new Error("there is no such recording");
      expect(await replay(forge, recording, await fleet.newTenant())).toEqual([]);
    },
  );
});

/**
 * Sends the recorded requests with today's ids. @returns each status that differs from the recorded
 * one, and each recorded field that the response lacks.
 */
async function replay(forge: Forge, recording: Recording, tenant: Tenant): Promise<string[]> {
  let ids: Variables = { ...tenant.variables };
  let then: Variables = { ...recording.variables };
  const found: string[] = [];
  for (const [n, step] of recording.steps.entries()) {
    const key = tenant.keys[step.as ?? "user"];
    const exchanges = recording.recorded[n] ?? [];
    // A step that polls has sent the same request many times. Replay only the last one for each
    // path.
    const asked = step.polls ? lastOfEach(exchanges) : exchanges;
    let last: unknown;
    for (const exchange of asked) {
      const request = renamed(exchange.request, then, ids);
      const answer = await answered(forge, request, key, step.polls && exchange.answer);
      last = answer.body;
      const at = `step ${n + 1}, ${request.method} ${request.path}`;
      if (answer.status !== exchange.answer.status) {
        found.push(`${at}: ${exchange.answer.status} then, ${answer.status} now`);
      }
      if (isJson(exchange.answer, request.path)) {
        found.push(...missingFields(exchange.answer.body, answer.body, at));
      }
    }
    then = { ...then, ...kept(step, exchanges.at(-1)?.answer.body) };
    ids = { ...ids, ...kept(step, last) };
  }
  return found;
}

/** Whether this is a JSON response of the API, not a file or a model's response. */
const isJson = ({ headers }: Exchange["answer"], path: string): boolean =>
  String(headers["content-type"]).includes("json") && !/\/(files|v1)\/./.test(path);

const lastOfEach = (exchanges: Exchange[]): Exchange[] => [
  ...new Map(
    exchanges
      .filter(({ answer }) => !String(answer.headers["content-type"]).includes("event-stream"))
      .map((exchange) => [exchange.request.path, exchange]),
  ).values(),
];

/** Replaces the recorded ids of a request with the ids of this run. */
function renamed<T>(request: T, then: Variables, ids: Variables): T {
  let text = JSON.stringify(request);
  for (const [name, value] of Object.entries(then)) text = text.replaceAll(value, `\${${name}}`);
  return filledIn(JSON.parse(text) as T, ids);
}

interface Answer {
  status: number;
  body: unknown;
}

/**
 * Sends a request. With `awaited`, repeats it until the job or pipeline has the recorded status.
 */
async function answered(
  forge: Forge,
  request: Exchange["request"],
  key: string,
  awaited?: Exchange["answer"] | false,
): Promise<Answer> {
  const statusThen = awaited && statusOf(awaited.body);
  for (let tries = 0; ; tries++) {
    const answer = await send(forge, request, key);
    if (!statusThen || statusOf(answer.body) === statusThen || tries > 600) return answer;
    await sleep(50);
  }
}

const statusOf = (body: unknown): unknown => (body as { status?: unknown } | null)?.status;

async function send(
  forge: Forge,
  { method, path, query, headers, body }: Exchange["request"],
  key: string,
): Promise<Answer> {
  const url = new URL(encodeURI(path), forge.stack.apiUrl);
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) url.searchParams.append(name, value);
  }
  const response = await fetch(url, {
    method,
    headers: { ...headers, "x-service-api-key": key },
    ...(body === undefined ? {} : { body: bytesOf(body) }),
  });
  const text = await response.text();
  const kind = String(response.headers.get("content-type"));
  return {
    status: response.status,
    body: kind.includes("json") ? JSON.parse(text) : { $text: text },
  };
}

const LATER = "a_field_of_a_later_release";

/** Objects whose keys are data, not properties: tags, GPUs, billed items. */
const MAPS = [
  "by_job_type",
  "by_tag",
  "by_pipeline",
  "gpu_hour",
  "unit_costs",
  "cost_breakdown",
  "payload",
];

/** Adds an unknown field to each object except MAPS, as a later server might. */
function withMore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMore);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, each]) => [
    name,
    MAPS.includes(name) ? each : withMore(each),
  ]);
  return { ...Object.fromEntries(fields), [LATER]: { of: ["another", "kind"] } };
}

type Change = (answer: Exchange["answer"], path: string) => Exchange["answer"];

const SERVERS: Record<string, Change> = {
  // A manifest gets no additional fields, because clients compare it with the stored file.
  "with additional fields": (answer, path) =>
    isJson(answer, path) && !path.endsWith("/manifest")
      ? { ...answer, body: withMore(answer.body) }
      : answer,
  unchanged: (answer) => answer,
};

describe.each(releases())("a server of %s", (release) => {
  const recordings = readRecordings(release);

  describe.each(DIFFERENT_CLIENTS)("%s", (client) => {
    test.each(oneFormOf(Object.entries(SERVERS)))(
      "%s",
      async (_name, changed) => {
        const players = await Promise.all(recordings.map((each) => play(each, changed)));
        try {
          const outcomes = await RUNNERS[client]?.(
            recordings.map(({ steps, variables }, n) => ({
              steps,
              base_url: players[n]?.url ?? "",
              step_url: players[n]?.stepUrl ?? "",
              keys: { user: "forge_user_a", admin: "forge_admin_a", stranger: "forge_user_b" },
              variables,
            })),
          );
          const wrong = recordings.flatMap((recording, n) =>
            compareScenario(recording, outcomes?.[n] ?? [], undefined, recording.variables).map(
              (difference) => `${recording.file}, ${recording.name}: ${difference}`,
            ),
          );
          expect(wrong).toEqual([]);
        } finally {
          await Promise.all(players.map((player) => player.close()));
        }
      },
      90_000,
    );
  });
});
