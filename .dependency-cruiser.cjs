/** Imports go one way: core <- platform <- services <- (activities | api | agent-bridge) <- bin, dev <- test. */
const { server, tools } = require("./dev/rooms.json");
const rooms = [...server, ...tools];

/** A room may import itself and what is listed; everything else in the house is forbidden to it. */
const allowed = {
  core: [],
  platform: ["core"],
  services: ["core", "platform"],
  workflows: ["core"],
  activities: ["core", "platform", "services"],
  api: ["core", "platform", "services"],
  "agent-bridge": ["core", "platform", "services"],
  bin: ["core", "platform", "services", "activities", "api", "agent-bridge"],
  dev: ["core", "platform", "services", "activities", "workflows", "bin"],
  test: rooms,
};

const roomRules = Object.entries(allowed).map(([room, others]) => ({
  name: `${room}-imports`,
  comment: `${room}/ may import only itself${others.length ? ` and ${others.join(", ")}` : ""}`,
  severity: "error",
  from: { path: `^${room}/`, pathNot: "\\.test\\.ts$" },
  to: {
    path: `^(${rooms.filter((other) => other !== room && !others.includes(other)).join("|")})/`,
    // Types of activities are the one exception; that nothing else comes with them, the next rule says.
    ...(room === "workflows" ? { pathNot: "^activities/index\\.ts$" } : {}),
  },
}));

module.exports = {
  forbidden: [
    ...roomRules.filter((rule) => rule.from.path !== "^test/"),
    {
      name: "workflows-run-alone",
      comment:
        "seen in the built code: whatever a workflow imports by value is core's or Temporal's",
      severity: "error",
      from: { path: "^dist/workflows/" },
      to: { path: "^dist/", pathNot: "^dist/(workflows|core)/" },
    },
    {
      name: "sdk-stands-alone",
      comment: "the SDK for TypeScript has no dependencies, of ours or of others",
      severity: "error",
      from: { path: "^sdk/typescript/src/" },
      to: { pathNot: "^(sdk/typescript/(src|dist)/|#)", dependencyTypesNot: ["core"] },
    },
    {
      name: "sdk-runs-in-browsers",
      comment: "only what `#platform` and `#disk` are in Node may use Node",
      severity: "error",
      from: {
        path: "^sdk/typescript/src/",
        pathNot: "^sdk/typescript/src/(platform/node|disk/(node|folder))\\.ts$",
      },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "no-cycles",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "core-is-pure",
      comment:
        "core/ is the domain: schemas, exact decimals, expressions, and nothing that touches the world",
      severity: "error",
      from: { path: "^core/", pathNot: "\\.test\\.ts$" },
      to: {
        dependencyTypes: ["npm", "npm-dev", "core"],
        pathNot: "node_modules/(zod|decimal\\.js|jsep|fastest-levenshtein)/",
      },
    },
    {
      name: "workflows-are-deterministic",
      severity: "error",
      from: { path: "^workflows/", pathNot: "\\.test\\.ts$" },
      to: {
        dependencyTypes: ["npm", "npm-dev", "core"],
        pathNot: "node_modules/@temporalio/(workflow|common)/",
      },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    parser: "swc",
    tsPreCompilationDeps: true,
  },
};
