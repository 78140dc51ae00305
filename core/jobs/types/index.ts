import { audit } from "./audit";
import { deploy } from "./deploy";
import { distill } from "./distill";
import { evaluate } from "./evaluate";
import { generate } from "./generate";
import { train } from "./train";

/** All job types, in the order in which pipelines run them and lists show them. */
export const DECLARATIONS = [generate, audit, distill, train, evaluate, deploy] as const;
