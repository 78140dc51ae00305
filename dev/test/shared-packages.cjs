// A jest runtime that loads Temporal's packages once for all test files of a worker. By default
// jest loads all modules again for each file, and these packages take half of a file's start-up
// time. Other packages stay in the file's own realm, because tests compare objects of pg and zod
// including their prototypes.
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
