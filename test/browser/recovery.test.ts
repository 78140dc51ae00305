import type { Browser } from "playwright-core";
import { inBrowser, openBrowser, openSignedIn, type Visit, visit } from "../support/browser";
import { type Forge, startForge } from "../support/forge";

/** The server ends under an open page, and comes back. */
let forge: Forge;
let browser: Browser;
let at: Visit;

inBrowser("recovery", () => {
  beforeAll(async () => {
    [forge, browser] = await Promise.all([startForge({}, { own: ["server"] }), openBrowser()]);
    at = await visit(browser);
  });

  afterAll(async () => {
    await browser?.close();
    await forge?.stop();
  });

  test("what is on the screen stays, and is patched again when the server is back", async () => {
    const { page } = at;
    const { job_id } = await forge.user.submit("generate", { domain: "law", num_samples: 5 });
    await openSignedIn(page, forge.user, "/ui/jobs");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: job_id }) });
    await row.getByText("Pending").waitFor();
    await forge.own("server").kill();
    await page.getByText("The list could not be updated").waitFor({ timeout: 30_000 });
    await row.getByText("Pending").waitFor();
    await forge.stack.startServer();
    await page.getByText("The list could not be updated").waitFor({ state: "detached" });
    await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    await row.getByText("Cancelled").waitFor();
    expect(at.complaints).toEqual([]);
  });
});
