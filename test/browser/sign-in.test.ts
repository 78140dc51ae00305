import { inBrowser, openSignedIn, signIn, type Visit, visit } from "../support/browser";
import { browserStage } from "../support/browser-stage";

/** Signing in and out, keys that end meanwhile, and a server that does. */

const stage = browserStage({ own: ["server"] });

inBrowser("sign-in", () => {
  let at: Visit;

  beforeEach(async () => {
    at = await visit(stage.browser);
  });

  afterEach(async () => {
    expect(at.complaints).toEqual([]);
    await at.context.close();
  });

  const paste = async (key: string): Promise<void> => {
    await at.page.getByLabel("API key").fill(key);
    await at.page.getByRole("button", { name: "Sign in" }).click();
  };

  test("a key that is none, and a worker's, are refused with a sentence", async () => {
    await at.page.goto(`${stage.forge.stack.apiUrl}/ui/`);
    await paste("forge_user_nothing");
    await at.page.getByText("Forge does not accept this key.").waitFor();
    await paste(stage.forge.stack.keys.workerKey);
    await at.page.getByText("This is a worker key").waitFor();
  });

  test("a good one leads to the page of the address, and is kept in this tab only", async () => {
    const { page, context } = at;
    await openSignedIn(page, stage.forge.user, "/ui/jobs?status=running&status=failed");
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    expect(page.url()).toBe(`${stage.forge.stack.apiUrl}/ui/jobs?status=running&status=failed`);
    const kept = await page.evaluate<string>(
      "JSON.stringify({ ...localStorage }) + document.cookie",
    );
    expect(kept).not.toContain("forge_");
    const stored = await page.evaluate<string>('sessionStorage.getItem("forge.session") ?? ""');
    // The pasted key was exchanged for a session's.
    expect(stored).not.toContain(stage.forge.user.key);
    // A second tab gets it from the first one.
    const second = await context.newPage();
    await second.goto(`${stage.forge.stack.apiUrl}/ui/workers`);
    await second.getByRole("heading", { name: "Workers" }).waitFor();
    await page.getByRole("button", { name: "Tenant local" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await second.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  test("nonsense in an address is left out of it, and the page is shown", async () => {
    const { page } = at;
    await openSignedIn(page, stage.forge.user, "/ui/jobs?status=nope&from=2026-99-99&other=1");
    for (const [path, heading] of [
      ["jobs?status=nope&from=2026-99-99&constructor=1", "Jobs"],
      ["deployments?status=nope", "Deployments"],
      ["billing?period=2026-13", "Billing"],
    ] as const) {
      const url = `${stage.forge.stack.apiUrl}/ui/${path}`;
      await page.goto(url);
      await page.getByRole("heading", { name: heading, exact: true }).waitFor();
      await page.waitForURL(url.replace(/\?.*/, ""));
    }
  });

  test("a revoked key leads to the sign-in, and a new one back to where that was", async () => {
    const { page } = at;
    const made = await stage.forge.user.post<{ key: string; key_id: string }>(
      "/api/auth/api-keys",
      {
        name: "soon revoked",
      },
    );
    await page.goto(`${stage.forge.stack.apiUrl}/ui/jobs?q=nightly`);
    await signIn(page, made.key);
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    await stage.forge.user.call("DELETE", `/api/auth/api-keys/${made.key_id}`);
    await page.getByText("Your key has expired or was revoked.").waitFor();
    expect(page.url()).toContain("/ui/jobs?q=nightly");
    await signIn(page, stage.forge.user.key);
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    expect(page.url()).toContain("/ui/jobs?q=nightly");
  });
});

/** The server ends under an open page, and comes back. */
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
