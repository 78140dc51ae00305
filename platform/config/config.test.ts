import { describeVariables, loadConfig } from "./config";

test("defaults are the contract's constants", () => {
  const { config, unknown } = loadConfig({});
  expect(config.fleet).toEqual({
    heartbeatIntervalS: 5,
    heartbeatTimeoutS: 30,
    assignmentTimeoutS: 15,
    deadlineGraceS: 60,
    offerS: 30,
    pollTimeoutS: 180,
    rankedTenants: [],
    sampleIntervalS: 60,
  });
  expect(config.jobs).toMatchObject({ timeoutS: 604_800, cancelGraceS: 20 });
  expect(config.jobs.policy).toMatchObject({ train: { gpu: 1 }, audit: {} });
  expect(config.http).toMatchObject({ port: 8080, maxBodyBytes: 1_048_576 });
  expect(unknown).toEqual([]);
});

test("an empty variable counts as not set", () => {
  expect(loadConfig({ FORGE_PORT: "" }).config.http.port).toBe(8080);
});

test("the error names each variable with a bad value", () => {
  expect(() => loadConfig({ FORGE_PORT: "http", FORGE_LOG_LEVEL: "loud" })).toThrow(
    /FORGE_PORT[\s\S]*FORGE_LOG_LEVEL/,
  );
});

test("a policy changes what it names and keeps the other rules", () => {
  const env = { FORGE_JOB_POLICY: '{"train": {"timeout_s": 60}, "audit": {"tags": ["eu"]}}' };
  expect(loadConfig(env).config.jobs.policy).toMatchObject({
    train: { gpu: 1, timeout_s: 60 },
    audit: { tags: ["eu"] },
  });
  const ofCpu = loadConfig({ ...env, FORGE_TRAIN_NEEDS_GPU: "false" }).config.jobs.policy;
  expect(ofCpu.train).toEqual({ timeout_s: 60 });
});

test.each(['{"train": {"gpus": 1}}', '{"trian": {}}', "{"])("the policy %s is refused", (text) => {
  expect(() => loadConfig({ FORGE_JOB_POLICY: text })).toThrow(/FORGE_JOB_POLICY/);
});

test("an unknown FORGE_ name is reported", () => {
  expect(loadConfig({ FORGE_PROT: "1", FORGE_MODELS_DIR: "/m", PATH: "/bin" }).unknown).toEqual([
    "FORGE_PROT",
  ]);
});

test("every variable is described on one line", () => {
  for (const line of describeVariables()) expect(line).toMatch(/^[A-Z0-9_]+ {2}.+ \(default .+\)$/);
});

const STRIPE = { FORGE_BILLING_EXPORT: "stripe", FORGE_STRIPE_API_KEY: "sk_test_1" };

test("usage is exported only where the operator configures a target", () => {
  expect(loadConfig({}).config.billingExport).toEqual({ intervalS: 60, to: { name: "none" } });
  expect(loadConfig(STRIPE).config.billingExport.to).toEqual({
    name: "stripe",
    apiKey: "sk_test_1",
    meterEvent: "forge_usage",
    apiUrl: "https://api.stripe.com",
  });
});

test.each([
  ["FORGE_STRIPE_API_KEY", { ...STRIPE, FORGE_STRIPE_API_KEY: "" }],
  ["FORGE_STRIPE_API_KEY", { ...STRIPE, FORGE_STRIPE_API_KEY: "sk_test_secret word" }],
  ["FORGE_STRIPE_API_URL", { ...STRIPE, FORGE_STRIPE_API_URL: "https://host/path" }],
  ["FORGE_STRIPE_API_URL", { ...STRIPE, FORGE_STRIPE_API_URL: "https://user:word@host" }],
  ["FORGE_BILLING_EXPORT", { FORGE_BILLING_EXPORT: "paypal" }],
])("an error names a wrong %s without its value", (name, env) => {
  const load = (): unknown => loadConfig(env);
  expect(load).toThrow(name);
  expect(load).not.toThrow(/secret word|user:word/);
});

test.each([
  ["", false, true, false],
  ["+127.0.0.0/8,+::1", true, true, false],
  ["10.0.0.0/8", false, false, false],
  ["10.0.0.0/8,+127.0.0.1", true, false, false],
])("FORGE_SSH_ALLOW %j", (given, loopback, publicOne, metadata) => {
  const { addresses } = loadConfig({ FORGE_SSH_ALLOW: given }).config.ssh;
  const allowed = ["127.0.0.1", "203.0.113.9", "169.254.169.254"].map((one) =>
    addresses.allows(one),
  );
  expect(allowed).toEqual([loopback, publicOne, metadata]);
});
