import type { Platform } from "./platform.ts";
import { JsSha256 } from "./sha256.ts";

export const platform: Platform = {
  env: {},
  readStackFile: () => undefined,
  createHash: () => new JsSha256(),
  streamsUploads: false,
  wasNotSent: () => false, // fetch does not say why it failed
};
