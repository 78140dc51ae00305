import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { forgeServerOptions, ownNodeOptions } from "./own-node-options";
import { checkoutRoot } from "./paths";

test("Node accepts the options of forge-server", () => {
  const options = forgeServerOptions();
  expect(options).toContainEqual(expect.stringMatching(/^--v8-pool-size=/));
  const { stdout } = spawnSync(process.execPath, [...options, "-p", "1 + 1"], { encoding: "utf8" });
  expect(stdout).toBe("2\n");
});

test("a program without options in its first line has none", () => {
  expect(ownNodeOptions(join(checkoutRoot(), "dev/forge.mjs"))).toEqual([]);
});
