/** The house rule: imports go one way, core <- infra <- (activities | api | agent-bridge) <- bin, dev <- test. */
const rooms = [
  "core",
  "infra",
  "workflows",
  "activities",
  "api",
  "agent-bridge",
  "bin",
  "dev",
  "test",
];

/** A room may import itself and what is listed; everything else in the house is forbidden to it. */
const allowed = {
  core: [],
  infra: ["core"],
  workflows: ["core"],
  activities: ["core", "infra"],
  api: ["core", "infra"],
  "agent-bridge": ["core", "infra"],
  bin: ["core", "infra", "activities", "api", "agent-bridge"],
  dev: ["core", "infra", "activities", "workflows", "bin"],
  test: rooms,
};

const roomRules = Object.entries(allowed).map(([room, others]) => ({
  name: `${room}-imports`,
  comment: `${room}/ may import only itself${others.length ? ` and ${others.join(", ")}` : ""}`,
  severity: "error",
  from: { path: `^${room}/`, pathNot: "\\.test\\.ts$" },
  to: {
    path: `^(${rooms.filter((other) => other !== room && !others.includes(other)).join("|")})/`,
    // Workflows name activities by type only: `import type` leaves no code behind.
    ...(room === "workflows" ? { dependencyTypesNot: ["type-only"] } : {}),
  },
}));

module.exports = {
  forbidden: [
    ...roomRules.filter((rule) => rule.from.path !== "^test/"),
    {
      name: "no-cycles",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "core-is-pure",
      comment: "core/ is the domain: zod, exact decimals, and nothing that touches the world",
      severity: "error",
      from: { path: "^core/", pathNot: "\\.test\\.ts$" },
      to: {
        dependencyTypes: ["npm", "npm-dev", "core"],
        pathNot: "node_modules/(zod|decimal\\.js)/",
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
    exclude: { path: "^(dist|node_modules)/" },
    parser: "swc",
    tsPreCompilationDeps: true,
  },
};
