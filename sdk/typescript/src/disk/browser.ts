import { ForgeError } from "../errors.ts";
import type { Disk } from "./disk.ts";

function refuse(): never {
  throw new ForgeError("there is no disk here: give the content itself, or read it by readFile");
}

export const disk: Disk = { open: refuse, save: refuse, pull: refuse, verify: refuse };
