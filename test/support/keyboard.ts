import type { Locator, Page } from "playwright-core";

/** The maximum number of Tab presses. Greater than the number of focusable elements of any page. */
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

/**
 * Waits until the element has the focus and is not busy. For example, the button "Drain" becomes
 * "Undrain" while it is still busy, and a busy button ignores keys.
 */
export const focused = (page: Page, target: Locator): Promise<void> =>
  target.and(page.locator(":focus:not([aria-busy=true])")).waitFor();

/**
 * With the keyboard only: opens a dialog by its button, closes it with Escape, opens it again, and
 * confirms.
 */
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
