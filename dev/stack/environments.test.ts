import { loadConfig } from "../../platform/config/config";
import { serverDefaults } from "./environments";

test("the embedded stack allows SSH to its own machine", () => {
  const { addresses } = loadConfig({ FORGE_SSH_ALLOW: serverDefaults("http://x").FORGE_SSH_ALLOW })
    .config.ssh;
  expect(["127.0.0.1", "::1", "203.0.113.9"].map((one) => addresses.allows(one))).toEqual([
    true,
    true,
    true,
  ]);
  expect(addresses.allows("169.254.169.254")).toBe(false);
});
