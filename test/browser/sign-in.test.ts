import type { Route } from "playwright-core";
import { ApiClient } from "../../dev/api-client";
import {
  checkPage,
  goTo,
  inBrowser,
  openSignedIn,
  signIn,
  TWO_FRAMES,
  type Visit,
  visit,
} from "../support/browser";
import { browserStage } from "../support/browser-stage";

const stage = browserStage({ own: ["server"] });

inBrowser("sign-in", () => {
  let at: Visit;

  beforeEach(async () => {
    at = await visit(stage.browser);
  });

  afterEach(async () => {
    expect(at.pageErrors).toEqual([]);
    await at.context.close();
  });

  const paste = async (key: string): Promise<void> => {
    await at.page.getByLabel("API key").fill(key);
    await at.page.getByRole("button", { name: "Sign in" }).click();
  };

  test("an invalid key and a worker's key are refused with a message", async () => {
    await at.page.goto(`${stage.forge.stack.apiUrl}/ui/`);
    await paste("forge_user_nothing");
    await at.page.getByText("Forge does not accept this key.").waitFor();
    await paste(stage.forge.stack.keys.workerKey);
    await at.page.getByText("This is a worker key").waitFor();
  });

  test("a valid key opens the page of the address, and is kept in this tab only", async () => {
    const { page, context } = at;
    await openSignedIn(page, stage.forge.user, "/ui/jobs?status=running&status=failed");
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    expect(page.url()).toBe(`${stage.forge.stack.apiUrl}/ui/jobs?status=running&status=failed`);
    const kept = await page.evaluate<string>(
      "JSON.stringify({ ...localStorage }) + document.cookie",
    );
    expect(kept).not.toContain("forge_");
    const stored = await page.evaluate<string>('sessionStorage.getItem("forge.session") ?? ""');
    // The pasted key was exchanged for a session key.
    expect(stored).not.toContain(stage.forge.user.key);
    // A second tab gets the session from the first one.
    const second = await context.newPage();
    await second.goto(`${stage.forge.stack.apiUrl}/ui/workers`);
    await second.getByRole("heading", { name: "Workers" }).waitFor();
    await page.getByRole("button", { name: "Tenant local" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await second.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  test("invalid parameters are dropped from the address, and the page is shown", async () => {
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

  test("a revoked key leads to the sign-in, and a new one back to the same page", async () => {
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

/** All tabs share the state of the session. */
inBrowser("tabs", () => {
  const expired = "Your key has expired or was revoked.";

  const newKey = async (name: string): Promise<{ api: ApiClient; id: string }> => {
    const { user, stack } = stage.forge;
    const { key, key_id } = await user.post<{ key: string; key_id: string }>("/api/auth/api-keys", {
      name,
    });
    return { api: new ApiClient(stack.apiUrl, key), id: key_id };
  };

  test("a session ends in all tabs, and they adopt the next one", async () => {
    const { page, context } = await visit(stage.browser);
    const { user, stack } = stage.forge;
    const { api, id } = await newKey("of three tabs");
    await openSignedIn(page, api, "/ui/jobs");
    const [silent, away] = [await context.newPage(), await context.newPage()];
    for (const tab of [silent, away]) {
      await tab.goto(`${stack.apiUrl}/ui/workers`);
      await tab.getByRole("heading", { name: "Workers" }).waitFor();
    }
    // The tab `silent` can't reach the API, and the tab `away` has left the dashboard.
    await silent.route("**/api/**", (route) => route.abort());
    await away.goto(`${stack.apiUrl}/docs/`);
    await user.call("DELETE", `/api/auth/api-keys/${id}`);
    // Opening a page sends a request, which is refused.
    await goTo(page, "/ui/pipelines");
    await page.getByText(expired).waitFor();
    await silent.getByText(expired).waitFor();
    await signIn(page, user.key);
    await silent.getByRole("heading", { name: "Workers" }).waitFor();
    await away.goto(`${stack.apiUrl}/ui/jobs`);
    await away.getByRole("heading", { name: "Jobs" }).waitFor();
    const session = "sessionStorage.getItem('forge.session')";
    await away.waitForFunction(`${session} === ${JSON.stringify(await page.evaluate(session))}`);
    await context.close();
  });

  test("a late refusal of an earlier session does not end the current one", async () => {
    const { page, context, pageErrors } = await visit(stage.browser);
    const { user } = stage.forge;
    await openSignedIn(page, user, "/ui/workers");
    const held = new Promise<Route>((resolve) => {
      void page.route("**/api/jobs?*", (route) => resolve(route), { times: 1 });
    });
    await goTo(page, "/ui/jobs");
    const late = await held;
    await page.getByRole("button", { name: "Tenant local" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await signIn(page, user.key);
    const error = { code: "invalid_api_key", message: "the key is revoked", request_id: "r" };
    await late.fulfill({ status: 403, json: { error } });
    await page.evaluate(TWO_FRAMES);
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    expect(await page.getByRole("heading", { name: "Sign in" }).count()).toBe(0);
    expect(pageErrors).toEqual([]);
    await context.close();
  });
});

inBrowser("an admin", () => {
  test("is warned, and each page says whose data it shows", async () => {
    const { page, context, pageErrors } = await visit(stage.browser);
    const { admin, stack } = stage.forge;
    const { user_id } = await admin.get<{ user_id: string }>("/api/auth/ping");
    await page.goto(`${stack.apiUrl}/ui/`);
    await page.getByLabel("API key").fill(admin.key);
    await page.getByText("This is an admin key").waitFor();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("You are signed in with an admin key.").waitFor();
    await page.getByText(`This month (UTC), only ${user_id}`).waitFor();
    await page.getByText("All tenants", { exact: true }).waitFor();
    await page.getByText(/^Forecast/).waitFor();
    expect(await checkPage(page, "overview-admin-light")).toEqual([]);
    await page.getByRole("button", { name: "Understood" }).click();
    for (const path of ["billing", "keys"]) {
      await goTo(page, `/ui/${path}`);
      await page.getByText(`Only tenant ${user_id}`, { exact: true }).waitFor();
    }
    expect(await page.getByText("You are signed in with an admin key.").count()).toBe(0);
    expect(pageErrors).toEqual([]);
    await context.close();
  });
});

inBrowser("addresses and code", () => {
  test("an address that can't be decoded shows the not-found page", async () => {
    const { page, context, pageErrors } = await visit(stage.browser);
    await openSignedIn(page, stage.forge.user, "/ui/");
    for (const path of ["%E0%A4%A", "jobs/%zz"]) {
      await page.goto(`${stage.forge.stack.apiUrl}/ui/${path}`);
      await page.getByText("There is no page at this address.").waitFor();
    }
    expect(pageErrors).toEqual([]);
    await context.close();
  });

  test("a page whose code is gone, as after an upgrade, reloads the tab once", async () => {
    const { page, context, pageErrors } = await visit(stage.browser);
    await openSignedIn(page, stage.forge.user, "/ui/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    let loads = 0;
    page.on("request", (request) => {
      if (request.isNavigationRequest()) loads += 1;
    });
    const code = "**/ui/assets/workers-page-*.js";
    await page.route(code, (route) => route.fulfill({ status: 404 }));
    await goTo(page, "/ui/workers");
    await page.getByText("Forge was upgraded, or a file of it is missing.").waitFor();
    expect(loads).toBe(1);
    await page.unroute(code);
    await page.getByRole("button", { name: "Load it again" }).click();
    await page.getByRole("heading", { name: "Workers" }).waitFor();
    expect(pageErrors).toEqual([]);
    await context.close();
  });
});

/** The server stops while a page is open, and restarts. */
inBrowser("recovery", () => {
  test("the screen stays as it is, and is updated again when the server is back", async () => {
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
