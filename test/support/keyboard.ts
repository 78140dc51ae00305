import type { Locator, Page } from "playwright-core";

/** More Tabs than any page has stops. */
const MAX_TABS = 120;

/** Presses Tab until the element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let n = 0; n < MAX_TABS; n++) {
    if ((await target.and(page.locator(":focus")).count()) > 0) return await focused(page, target);
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${target}`);
}

/** The focus is on it, or comes to it, and it is not busy: a busy button has its new name, and does nothing yet. */
export const focused = (page: Page, target: Locator): Promise<void> =>
  target.and(page.locator(":focus:not([aria-busy=true])")).waitFor();

/** Opens a question by its button, closes it by Escape, opens it again, and says yes: by keys alone. */
export async function answerByKeys(
  page: Page,
  opener: Locator,
  yes: string | RegExp,
): Promise<void> {
  await tabTo(page, opener);
  await page.keyboard.press("Enter");
  const safe = page.getByRole("dialog").getByRole("button", { name: "Keep it" });
  await focused(page, safe);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await focused(page, opener);
  await page.keyboard.press("Enter");
  await focused(page, safe);
  await tabTo(page, page.getByRole("dialog").getByRole("button", { name: yes }));
  await page.keyboard.press("Enter");
}
