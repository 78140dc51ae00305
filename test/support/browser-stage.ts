import type { Browser, Page } from "playwright-core";
import { goTo, openBrowser, openSignedIn, type Visit, visit } from "./browser";
import { type Forge, type ForgeOptions, startForge } from "./forge";

export interface Stage {
  forge: Forge;
  browser: Browser;
  /** The tab that the tests share. */
  at: Visit;
  /**
   * Opens a path below /ui in the signed-in tab. Navigates like a link, which needs a quarter of
   * the CPU time of a page load.
   */
  open(path: string): Promise<Page>;
}

interface Options extends ForgeOptions {
  /** Called to start the stack. By default, `startForge` is called. */
  start?: () => Promise<Forge>;
  env?: Record<string, string>;
  /**
   * The path below /ui that the tab opens, signed in as the ordinary user. Without a path the tab
   * is blank.
   */
  path?: string;
}

/**
 * Starts a stack, a browser and a tab for the tests of a file. After each test, checks that the tab
 * has reported no errors.
 *
 * @param prepare runs before the tab opens.
 */
export function browserStage(
  { start, env, path, ...options }: Options = {},
  prepare: (stage: Stage) => Promise<unknown> = async () => undefined,
): Stage {
  const stage: Partial<Stage> = {
    async open(to) {
      const { page } = (stage as Stage).at;
      await goTo(page, `/ui${to}`);
      return page;
    },
  };
  beforeAll(async () => {
    const starting = start ? start() : startForge(env, options);
    [stage.forge, stage.browser] = await Promise.all([starting, openBrowser()]);
    stage.at = await visit(stage.browser);
    await prepare(stage as Stage);
    if (path !== undefined) await openSignedIn(stage.at.page, stage.forge.user, `/ui${path}`);
  });
  afterEach(() => {
    expect(stage.at?.pageErrors).toEqual([]);
  });
  afterAll(async () => {
    await stage.browser?.close();
    await stage.forge?.stop();
  });
  return stage as Stage;
}
