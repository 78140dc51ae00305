/**
 * Compares the dashboard of a tenant with much data to the dashboard of a tenant with little data.
 */

import type { Browser, Page } from "playwright-core";
import { waitFor } from "../../dev/stack/wait";
import { goTo, inBrowser, openBrowser, openSignedIn, type Visit, visit } from "../support/browser";
import { type Forge, startForge } from "../support/forge";
import {
  type Amounts,
  LAST_LINE,
  RARE_JOB,
  RARE_TAG,
  type Seeded,
  seedTenant,
} from "../support/large-dashboard";

const MIB = 1024 * 1024;
const LITTLE: Amounts = { jobs: 1, workers: 1, logBytes: 1024, lineage: 1 };
const MUCH: Amounts = { jobs: 100_000, workers: 1_000, logBytes: 64 * MIB, lineage: 500 };
const ROUNDS = 9;
const MAX_RATIO = 2;
/**
 * The duration of three frames, in ms. An action whose median is at most this long always passes,
 * even if the ratio is greater than MAX_RATIO. Measured times are multiples of a frame, so the
 * ratio of two such short times means nothing.
 */
const UNNOTICED_MS = 50;

/** No rate limit: a test opens pages faster than a user. */
const UNLIMITED = { FORGE_RATE_LIMIT_PER_MINUTE: "1000000", FORGE_RATE_LIMIT_BURST: "1000000" };

interface Side {
  forge: Forge;
  seeded: Seeded;
  at: Visit;
}

let browser: Browser;
let little: Side;
let much: Side;

/** A user action, until its result is visible. */
type Action = (page: Page, seeded: Seeded) => Promise<unknown>;

const PAINT = `performance.getEntriesByName("first-contentful-paint")[0]?.startTime`;

/** The time until the first paint of a freshly loaded page, in ms. */
async function paintOf(page: Page, path: string): Promise<number> {
  await page.goto(path);
  return await waitFor("the first paint", () => page.evaluate<number | undefined>(PAINT));
}

const see = async (page: Page, text: string | RegExp): Promise<void> =>
  await page.locator("#main").getByText(text).first().waitFor();

// Uses CSS: a search by role reads the style of every element, which takes longer in a long table.
const firstLink = async (page: Page, table: string): Promise<void> =>
  await page.locator(`table[aria-label="${table}"] a`).first().waitFor();

/**
 * Waits until the job is in the first row. It is not enough to wait for some row: the rows of the
 * previous filter stay visible until the response arrives.
 */
const firstJob = async (page: Page, jobId: string): Promise<void> =>
  await page.locator(`table[aria-label="Jobs"] [aria-rowindex="2"] a[href$="${jobId}"]`).waitFor();

const listJobs: Action = async (page, { jobId }) => {
  await goTo(page, "/ui/jobs");
  await firstJob(page, jobId);
};

const ACTIONS: Record<string, Action> = {
  overview: async (page) => {
    await goTo(page, "/ui/");
    await see(page, "Why jobs wait");
  },
  "list of jobs": listJobs,
  "jobs of a tag": async (page) => {
    await goTo(page, `/ui/jobs?tag=${RARE_TAG}`);
    await firstJob(page, RARE_JOB);
  },
  "jobs by a text": async (page) => {
    await goTo(page, `/ui/jobs?q=${RARE_TAG}`);
    await firstJob(page, RARE_JOB);
  },
  job: async (page, { jobId }) => {
    await goTo(page, `/ui/jobs/${jobId}`);
    await see(page, /completed the job in/);
  },
  log: async (page, { jobId }) => {
    await goTo(page, `/ui/jobs/${jobId}?tab=log`);
    await page.getByRole("log").getByText(LAST_LINE).waitFor();
  },
  "search in the log": async (page) => {
    await page.getByLabel("Search the log").fill("the last line");
    await see(page, "1 line");
  },
  workers: async (page) => {
    await goTo(page, "/ui/workers");
    await firstLink(page, "Workers");
  },
  worker: async (page) => {
    await goTo(page, "/ui/workers/box-1");
    await see(page, "Jobs handled");
  },
  artifacts: async (page) => {
    await goTo(page, "/ui/artifacts");
    await firstLink(page, "Artifacts");
  },
  lineage: async (page, { artifactId }) => {
    await goTo(page, `/ui/artifacts/${artifactId}?tab=lineage`);
    await page.locator(".react-flow__node").first().waitFor();
  },
  billing: async (page) => {
    await goTo(page, "/ui/billing");
    await see(page, "Written");
  },
};

/** Unmeasured preparations. The key names the measured action that the preparation runs before. */
const BEFORE: Record<string, Action> = { "jobs by a text": listJobs };

const LOADED = ["/ui/", "/ui/jobs", "/ui/workers", "/ui/artifacts", "/ui/billing"];

async function open(amounts: Amounts): Promise<Side> {
  const forge = await startForge(UNLIMITED, { optimized: true });
  const seeded = await seedTenant(forge, amounts);
  const at = await visit(browser);
  await openSignedIn(at.page, forge.user, "/ui/");
  return { forge, seeded, at };
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * Runs all actions in order, for several rounds. Each action runs with little data and then with
 * much data, so that other load on the machine slows both.
 *
 * @returns a line for each action that is too slow: with much data, its median is over
 *   UNNOTICED_MS, and over MAX_RATIO times the median with little data.
 */
async function slower(
  measures: Record<string, (side: Side) => Promise<number>>,
): Promise<string[]> {
  const times = Object.keys(measures).map(() => ({ little: [] as number[], much: [] as number[] }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, measure] of Object.values(measures).entries()) {
      times[at]?.little.push(await measure(little));
      times[at]?.much.push(await measure(much));
    }
  }
  return Object.keys(measures).flatMap((what, at) => {
    const [littleMs, muchMs] = [median(times[at]?.little ?? []), median(times[at]?.much ?? [])];
    const ratio = muchMs / littleMs;
    const line = `${what}: ${littleMs.toFixed(0)} ms, ${muchMs.toFixed(0)} ms: ${ratio.toFixed(2)} times`;
    process.stderr.write(`${line}\n`);
    return ratio <= MAX_RATIO || muchMs <= UNNOTICED_MS ? [] : [line];
  });
}

inBrowser("with 100,000 jobs, 1,000 workers, a log of 64 MiB and a lineage of 500", () => {
  beforeAll(async () => {
    browser = await openBrowser();
    little = await open(LITTLE);
    much = await open(MUCH);
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    for (const side of [little, much]) await side?.forge.stop();
  });

  test("the first paint of each page takes at most twice as long", async () => {
    const paints = LOADED.map((path): [string, (side: Side) => Promise<number>] => [
      `first paint of ${path}`,
      ({ at, forge }) => paintOf(at.page, `${forge.stack.apiUrl}${path}`),
    ]);
    expect(await slower(Object.fromEntries(paints))).toEqual([]);
  }, 300_000);

  test("a large lineage shows the nearest artifacts first, and all on demand", async () => {
    const { at, seeded } = much;
    await goTo(at.page, `/ui/artifacts/${seeded.artifactId}?tab=lineage`);
    await see(at.page, "The graph shows the 30 that are nearest to this artifact.");
    const all = at.page.getByRole("button", { name: "Show all 503" });
    await all.click();
    await all.waitFor({ state: "detached" });
    await at.page.locator(".react-flow__node").first().waitFor();
  });

  test("each user action takes at most twice as long", async () => {
    const timed = Object.entries(ACTIONS).map(
      ([name, act]): [string, (side: Side) => Promise<number>] => [
        name,
        async ({ at, seeded }) => {
          await BEFORE[name]?.(at.page, seeded);
          const began = performance.now();
          await act(at.page, seeded);
          return performance.now() - began;
        },
      ],
    );
    expect(await slower(Object.fromEntries(timed))).toEqual([]);
  }, 600_000);
});
