/** @type {import("jest").Config} */
module.exports = {
  testEnvironment: "node",
  runtime: "<rootDir>/dev/test/shared-packages.cjs",
  transform: {
    "^.+\\.ts$": ["@swc/jest", { jsc: { target: "es2023", parser: { syntax: "typescript" } } }],
  },
  // The SDK implements these imports for Node and for browsers. The tests use the ones for Node.
  moduleNameMapper: { "^#(platform|disk)$": "<rootDir>/sdk/typescript/src/$1/node.ts" },
  testPathIgnorePatterns: ["/node_modules/", "/dist/"],
  modulePathIgnorePatterns: ["<rootDir>/dist/"],
  // Jest's default of 5 s is too short for tests that start a stack or wait for time-outs of Forge.
  testTimeout: 60_000,
};
