import type { Platform } from "./platform.ts";
import { JsSha256 } from "./sha256.ts";

export const platform: Platform = {
  env: {},
  readStackFile: () => undefined,
  createHash: () => new JsSha256(),
  streamsUploads: false,
  maxStreams: 2,
  wasNotSent: () => false, // a browser's fetch gives no reason
};
