import { ForgeError } from "../errors.ts";
import type { Disk } from "./disk.ts";

function refuse(): never {
  throw new ForgeError("browsers have no disk: pass the content itself, or use readFile");
}

export const disk: Disk = { open: refuse, save: refuse, pull: refuse, verify: refuse };
