import { inBrowser, openSignedIn } from "../support/browser";
import { browserStage } from "../support/browser-stage";

/** Everything by the keyboard. */
const stage = browserStage();

inBrowser("keys", () => {
  let jobIds: string[] = [];

  beforeAll(async () => {
    for (let n = 0; n < 3; n++) {
      const { job_id } = await stage.forge.user.submit("generate", {
        domain: "law",
        num_samples: 5,
      });
      jobIds = [job_id, ...jobIds];
    }
    await openSignedIn(stage.at.page, stage.forge.user, "/ui/");
    await stage.at.page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  test("g and a letter go to a page; j, k and Enter to a row; / to the filter", async () => {
    const { page } = stage.at;
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.getByRole("link", { name: jobIds[2] ?? "" }).waitFor();
    for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
    await page
      .getByRole("link", { name: jobIds[1] ?? "" })
      .and(page.locator(":focus"))
      .waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/ui/jobs/${jobIds[1]}`);
    await page.goBack();
    await page.getByRole("link", { name: jobIds[2] ?? "" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type(jobIds[0] ?? "");
    await page.getByRole("link", { name: jobIds[1] ?? "" }).waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: jobIds[1] ?? "" }).waitFor();
  });

  test("Ctrl+K finds a page by its name, and a job by its id", async () => {
    const { page } = stage.at;
    await page.keyboard.press("Control+k");
    await page.keyboard.type("work");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type(jobIds[0] ?? "");
    await page.getByRole("option", { name: "generate job" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/ui/jobs/${jobIds[0]}`);
  });

  test("? shows the keys of the page, Esc closes them", async () => {
    const { page } = stage.at;
    await page.getByRole("button", { name: "Cancel" }).waitFor();
    // Keys do nothing in a dialog, and the palette is one until it has faded.
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Cancel the job").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("the theme is chosen in the menu, and stays", async () => {
    const { page } = stage.at;
    await page.getByRole("button", { name: "Tenant local" }).press("Enter");
    await page.getByRole("menuitemradio", { name: "Dark" }).press("Enter");
    await page.reload();
    await page.locator('html[data-theme="dark"]').waitFor();
  });
});
