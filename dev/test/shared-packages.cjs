// A runtime for jest: Temporal's packages are loaded once for all test files of a worker. Jest loads all modules
// anew for each file, and these are half of what a file costs before its first test. Others stay in the file's
// own realm: what pg and zod make is compared with what the test makes, prototypes included.
const { createRequire } = require("node:module");
const { default: Runtime } = require("jest-runtime");

class SharedPackages extends Runtime {
  requireModuleOrMock(from, name) {
    return name.startsWith("@temporalio/")
      ? createRequire(from)(name)
      : super.requireModuleOrMock(from, name);
  }
}

module.exports = { __esModule: true, default: SharedPackages };
