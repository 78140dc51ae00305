import { inBrowser, openSignedIn } from "../support/browser";
import { browserStage } from "../support/browser-stage";

/** The server ends under an open page, and comes back. */

const stage = browserStage({ own: ["server"] });

inBrowser("recovery", () => {
  test("what is on the screen stays, and is patched again when the server is back", async () => {
    const { page } = stage.at;
    const { job_id } = await stage.forge.user.submit("generate", { domain: "law", num_samples: 5 });
    await openSignedIn(page, stage.forge.user, "/ui/jobs");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: job_id }) });
    await row.getByText("Pending").waitFor();
    await stage.forge.own("server").kill();
    await page.getByText("The list could not be updated").waitFor({ timeout: 30_000 });
    await row.getByText("Pending").waitFor();
    await stage.forge.stack.startServer();
    await page.getByText("The list could not be updated").waitFor({ state: "detached" });
    await stage.forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    await row.getByText("Cancelled").waitFor();
  });
});
