import type { Platform } from "./platform.ts";
import { JsSha256 } from "./sha256.ts";

export const platform: Platform = {
  env: {},
  readStackFile: () => undefined,
  createHash: () => new JsSha256(),
  streamsUploads: false,
  maxStreams: 2,
  // A browser does not tell why fetch failed, so a request may have been sent.
  wasNotSent: () => false,
};
