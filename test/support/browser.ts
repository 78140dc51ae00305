import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe, { type AxeResults } from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { ApiClient } from "../../dev/api-client";
import { chromiumPath } from "../../dev/stack/chromium";
import { cacheDir } from "../../dev/stack/paths";

/** Browser tests are skipped on a machine without Chromium (dev/stack/chromium.ts). */
export const inBrowser: jest.Describe = chromiumPath() ? describe : describe.skip;

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function openBrowser(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error("there is no Chromium here");
  return await chromium.launch({ executablePath, args: FLAGS });
}

/** The themes and sizes to check pages in: `npm test` uses two of them, `npm run test:slow` all. */
const ALL_VIEWPORTS = [
  { name: "phone-dark", dark: true, phone: true },
  { name: "light", dark: false, phone: false },
  { name: "dark", dark: true, phone: false },
  { name: "phone", dark: false, phone: true },
];
export const VIEWPORTS = process.env.TEST_SLOW
  ? ALL_VIEWPORTS
  : ALL_VIEWPORTS.filter(({ dark, phone }) => dark === phone);

export interface Visit {
  page: Page;
  context: BrowserContext;
  /** Violations of the content security policy, script errors and dialogs. Must be empty. */
  pageErrors: string[];
}

interface VisitOptions {
  dark?: boolean;
  phone?: boolean;
}

const WIDE = { width: 1360, height: 850 };
const PHONE = { width: 320, height: 720 };

// This script runs in the page. It is a string, because TypeScript compiles this file without the
// DOM types.
const NOTE_VIOLATIONS = `document.addEventListener("securitypolicyviolation", (event) =>
  noteViolation([event.violatedDirective, event.blockedURI, event.sourceFile, event.lineNumber].join(" ")));`;

const RUN_AXE = `axe.run(document, { resultTypes: ["violations"] })`;

const IS_TOO_LARGE = `(() => {
  const main = document.querySelector("main");
  const { scrollWidth, scrollHeight } = document.documentElement;
  return scrollWidth > innerWidth || (main !== null && scrollHeight > innerHeight) ||
    (main !== null && main.scrollWidth > main.clientWidth);
})()`;

/** Opens a new browser profile with one tab, and records every error in the tab. */
export async function visit(
  browser: Browser,
  { dark = false, phone = false }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: phone ? PHONE : WIDE,
    hasTouch: phone,
    isMobile: phone,
    colorScheme: dark ? "dark" : "light",
    // Turn off animations, so that tests need not wait for them.
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
  });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const pageErrors: string[] = [];
  page.on("pageerror", (error) => pageErrors.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    pageErrors.push(`a script of a tenant ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.exposeFunction("noteViolation", (text: string) => pageErrors.push(`CSP: ${text}`));
  await page.addInitScript(NOTE_VIOLATIONS);
  return { page, context, pageErrors };
}

/** Pastes a key into the visible sign-in form. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#main").waitFor();
}

/** Opens a path of the dashboard, signed in with a key. */
export async function openSignedIn(page: Page, api: ApiClient, path: string): Promise<void> {
  await page.goto(`${api.baseUrl}${path}`);
  await signIn(page, api.key);
}

/** Problems that axe rates as serious or critical, one per line. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  if (!(await page.evaluate("Boolean(globalThis.axe)"))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(RUN_AXE);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, help, nodes }) =>
      nodes.map((node) => `${id}: ${help}: ${node.target.join(" ")} ${node.failureSummary ?? ""}`),
    );
}

/** Navigates to a path of the dashboard like its links, without a page load. */
export const goTo = async (page: Page, path: string): Promise<void> => {
  await page.evaluate(
    `history.pushState({}, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
  );
};

export const TWO_FRAMES =
  "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";

/**
 * Navigates to a path below /ui. Waits until `text` is in the page, and then for two frames, in
 * which the dashboard measures its lists.
 */
export async function show(page: Page, path: string, text: string | RegExp): Promise<void> {
  await goTo(page, `/ui${path}`);
  await page.locator("#main").getByText(text).first().waitFor({ state: "attached" });
  await page.evaluate(TWO_FRAMES);
}

/**
 * Takes a screenshot of a page, and checks its accessibility and its size. @returns the problems.
 */
export async function checkPage(page: Page, picture: string): Promise<string[]> {
  await page.screenshot({ path: join(screenshotFolder(), `${picture}.png`) });
  const problems = await accessibilityProblems(page);
  if (await isTooLarge(page)) problems.push("is larger than its window");
  return problems.map((problem) => `${picture}: ${problem}`);
}

/**
 * Checks pages in one theme and size.
 *
 * @param pages by screenshot name: a path below /ui, and a text that appears when the page has
 *   loaded.
 */
export async function checkPages(
  browser: Browser,
  api: ApiClient,
  { name, dark, phone }: (typeof VIEWPORTS)[number],
  pages: Record<string, [path: string, text: string]>,
): Promise<{ problems: string[]; pageErrors: string[] }> {
  const { page, context, pageErrors } = await visit(browser, { dark, phone });
  await openSignedIn(page, api, "/ui/");
  const problems: string[] = [];
  for (const [picture, [path, text]] of Object.entries(pages)) {
    await show(page, path, text);
    problems.push(...(await checkPage(page, `${picture}-${name}`)));
  }
  await context.close();
  return { problems, pageErrors };
}

/**
 * True in one of these cases:
 * - The page is wider than the window.
 * - The page has a main region and is taller than the window, so its menu would scroll.
 * - The content of the main region is wider than the region.
 */
const isTooLarge = async (page: Page): Promise<boolean> =>
  await page.evaluate<boolean>(IS_TOO_LARGE);

/** The folder of the last run's screenshots. */
function screenshotFolder(): string {
  const folder = process.env.FORGE_SCREENSHOTS ?? join(cacheDir(), "screenshots");
  mkdirSync(folder, { recursive: true });
  return folder;
}
