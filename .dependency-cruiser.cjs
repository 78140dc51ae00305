/**
 * Checks which folders import each other. A folder imports only folders to its left in this list:
 * core, platform, services, (activities, api, agent-bridge), workflows, bin, dev, test.
 * Folders in parentheses don't import each other. `allowed` has the exact rules.
 */
const { server, tools } = require("./dev/source-folders.json");
const folders = [...server, ...tools];

/** A folder may import itself and the listed folders. All other imports are forbidden. */
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
  test: folders,
};

const folderRules = Object.entries(allowed).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `${folder}/ may import only itself${others.length ? ` and ${others.join(", ")}` : ""}`,
  severity: "error",
  from: { path: `^${folder}/`, pathNot: "\\.test\\.ts$" },
  to: {
    path: `^(${folders.filter((other) => other !== folder && !others.includes(other)).join("|")})/`,
    // Exception: workflows may import types from activities/index.ts. The rule
    // `workflows-run-alone` forbids the import of values.
    ...(folder === "workflows" ? { pathNot: "^activities/index\\.ts$" } : {}),
  },
}));

module.exports = {
  forbidden: [
    ...folderRules.filter((rule) => rule.from.path !== "^test/"),
    {
      name: "workflows-run-alone",
      comment:
        "checked in the built code: a workflow may import values only from core and Temporal",
      severity: "error",
      from: { path: "^dist/workflows/" },
      to: { path: "^dist/", pathNot: "^dist/(workflows|core)/" },
    },
    {
      name: "sdk-stands-alone",
      comment: "the SDK for TypeScript has no dependencies",
      severity: "error",
      from: { path: "^sdk/typescript/src/" },
      to: { pathNot: "^(sdk/typescript/(src|dist)/|#)", dependencyTypesNot: ["core"] },
    },
    {
      name: "sdk-runs-in-browsers",
      comment: "only the Node implementations of `#platform` and `#disk` may use Node",
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
        "core/ is the domain: schemas, exact decimals and expressions, without any input or output",
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
