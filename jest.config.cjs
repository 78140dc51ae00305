/** @type {import("jest").Config} */
module.exports = {
  testEnvironment: "node",
  runtime: "<rootDir>/dev/test/shared-packages.cjs",
  transform: {
    "^.+\\.ts$": ["@swc/jest", { jsc: { target: "es2023", parser: { syntax: "typescript" } } }],
  },
  // The SDK's own imports that differ in browsers.
  moduleNameMapper: { "^#(platform|disk)$": "<rootDir>/sdk/typescript/src/$1/node.ts" },
  testPathIgnorePatterns: ["/node_modules/", "/dist/"],
  modulePathIgnorePatterns: ["<rootDir>/dist/"],
  // A stack boots in seconds; a fault test waits for time-outs.
  testTimeout: 60_000,
};
