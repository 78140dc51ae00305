import { describeVariables, loadConfig } from "./config";

test("defaults are the contract's constants", () => {
  const { config, unknown } = loadConfig({});
  expect(config.fleet).toEqual({
    heartbeatIntervalS: 5,
    heartbeatTimeoutS: 30,
    assignmentTimeoutS: 15,
  });
  expect(config.jobs).toMatchObject({ timeoutS: 604_800, trainNeedsGpu: true });
  expect(config.http).toMatchObject({ port: 8080, maxBodyBytes: 1_048_576 });
  expect(unknown).toEqual([]);
});

test("an empty variable is one that is not set", () => {
  expect(loadConfig({ FORGE_PORT: "" }).config.http.port).toBe(8080);
});

test("a bad value is named", () => {
  expect(() => loadConfig({ FORGE_PORT: "http", FORGE_LOG_LEVEL: "loud" })).toThrow(
    /FORGE_PORT[\s\S]*FORGE_LOG_LEVEL/,
  );
});

test("an unknown FORGE_ name is reported", () => {
  expect(loadConfig({ FORGE_PROT: "1", PATH: "/bin" }).unknown).toEqual(["FORGE_PROT"]);
});

test("every variable has a line of its own", () => {
  for (const line of describeVariables()) expect(line).toMatch(/^[A-Z_]+ {2}.+ \(default .+\)$/);
});
