import { join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** For Node processes of tests: new objects are collected less often, which saves a tenth of the CPU time. */
export const FEWER_COLLECTIONS = "--min-semi-space-size=16";

/** For those that load much and do little: what one has compiled is there for the next. */
export const CHEAP_START = [
  FEWER_COLLECTIONS,
  `--require=${join(checkoutRoot(), "dist/dev/test/compile-cache.js")}`,
];
