import type { Browser, Page } from "playwright-core";
import { goTo, openBrowser, openSignedIn, type Visit, visit } from "./browser";
import { type Forge, type ForgeOptions, startForge } from "./forge";

export interface Stage {
  forge: Forge;
  browser: Browser;
  /** The tab that the tests share. */
  at: Visit;
  /** Goes to a path below /ui in that tab, which is signed in: as a link does, at a quarter of a load's CPU time. */
  open(path: string): Promise<Page>;
}

interface Options extends ForgeOptions {
  /** In place of a stack of the tests' own. */
  start?: () => Promise<Forge>;
  env?: Record<string, string>;
  /** A path below /ui that the tab opens, signed in as the ordinary user; without one the tab is blank. */
  path?: string;
}

/**
 * A stack, a browser and a tab for the tests of a file, from its first test to its last. After each test the tab
 * has nothing to complain of.
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
    expect(stage.at?.complaints).toEqual([]);
  });
  afterAll(async () => {
    await stage.browser?.close();
    await stage.forge?.stop();
  });
  return stage as Stage;
}
