import type { Page } from "playwright-core";
import { ApiClient } from "../../dev/api-client";
import { accessibilityProblems, inBrowser, openSignedIn, visit } from "../support/browser";
import { browserStage } from "../support/browser-stage";

const stage = browserStage({ path: "/keys" });

const withKey = (key: string): ApiClient => new ApiClient(stage.forge.stack.apiUrl, key);
const pingStatus = async (key: string): Promise<number> =>
  (await withKey(key).call("GET", "/api/auth/ping")).status;

/** Creates a key in the page. @returns its text. */
async function create(page: Page, name: string, scope: "user" | "worker"): Promise<string> {
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByRole("radio", { name: scope }).check();
  await dialog.getByRole("button", { name: "Create the key" }).click();
  await dialog.getByText("Forge does not show this key again.").waitFor();
  return (await dialog.locator("pre").first().innerText()).trim();
}

const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });

inBrowser("API keys", () => {
  test("a key is shown once, works over HTTP, and is refused once it is revoked", async () => {
    const { page } = stage.at;
    const key = await create(page, "ci", "user");
    expect(key).toMatch(/^forge_user_/);
    expect(await accessibilityProblems(page)).toEqual([]);
    // Neither Escape nor a click outside closes the dialog.
    await page.keyboard.press("Escape");
    await page.mouse.click(5, 5);
    await page.getByRole("tab", { name: "forge" }).click();
    await page.getByText(`echo ${key} | forge login ${stage.forge.stack.apiUrl}`).waitFor();
    await page.getByRole("button", { name: "I have kept it" }).click();
    await row(page, "ci").waitFor();
    expect(await page.content()).not.toContain(key);
    expect(await pingStatus(key)).toBe(200);
    const child = await withKey(key).post<{ key: string }>("/api/auth/api-keys", {
      name: "child",
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
    await page.reload();
    await row(page, "child").waitFor();
    await row(page, "ci")
      .getByRole("button", { name: /^Revoke ci/ })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("With it ends 1 key that it made (child).").waitFor();
    await dialog.getByRole("button", { name: "Revoke the key" }).click();
    await page.getByText("The key ci is revoked.").waitFor();
    await row(page, "child").waitFor({ state: "detached" });
    expect(await pingStatus(key)).toBe(403);
    expect(await pingStatus(child.key)).toBe(403);
    await page.getByLabel("Show revoked and expired ones").check();
    await row(page, "child").getByText("revoked").waitFor();
  });

  test("a worker key shows the agent's command", async () => {
    const { page } = stage.at;
    const key = await create(page, "gpu-box-1", "worker");
    await page
      .getByText(`SERVICE_API_URL=${stage.forge.stack.apiUrl} SERVICE_API_KEY=${key} forge-agent`)
      .waitFor();
    await page.getByRole("button", { name: "I have kept it" }).click();
    await row(page, "gpu-box-1").getByText("worker, for 1").waitFor();
    expect(await pingStatus(key)).toBe(200);
    expect((await withKey(key).call("GET", "/api/jobs")).status).toBe(403);
  });

  test("a missing name is reported at its field", async () => {
    const { page } = stage.at;
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("n");
    await page.getByRole("button", { name: "Create the key" }).click();
    await page.getByText("Give it a name").waitFor();
    await page.getByLabel("Name").fill("x".repeat(129));
    await page.getByText("At most 128 characters: these are 129.").waitFor();
    await page.keyboard.press("Escape");
  });

  test("revoking the key of this sign-in warns first, then shows the sign-in", async () => {
    const { page } = stage.at;
    const own = await stage.forge.user.post<{ key: string }>("/api/auth/api-keys", {
      name: "mine",
    });
    const other = await visit(stage.browser);
    await openSignedIn(other.page, withKey(own.key), "/ui/keys");
    await row(other.page, "mine").getByText("this sign-in").waitFor();
    await row(other.page, "mine")
      .getByRole("button", { name: /^Revoke mine/ })
      .click();
    await other.page.getByText("You are signed in with it.").waitFor();
    await other.page.getByRole("button", { name: "Revoke the key" }).click();
    await other.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(other.page.url()).toContain("/ui/keys");
    expect(await pingStatus(own.key)).toBe(403);
    expect(other.pageErrors).toEqual([]);
    await other.context.close();
    await page.reload();
    await row(page, "gpu-box-1").waitFor();
  });
});
