import { dashboardColors, dashboardTypes } from "./dashboard";
import { checkLines } from "./fields";
import { agentTypes, commands, handlerTypes, sdkMethods, sdkTypes } from "./python";
import { sdkParams, sdkMethods as typescriptMethods } from "./typescript";

/** The generated files of clients, agent and handlers: content by path. */
export function filesOfJobTypes(): Record<string, string> {
  const python = {
    "agent/src/forge_agent/declared_types.py": agentTypes(),
    "compute/src/forge_compute/declared_types.py": handlerTypes(),
    "sdk/python/src/forge/declared_types.py": sdkTypes(),
    "sdk/python/src/forge/resources/job_type_methods.py": sdkMethods(),
    "sdk/python/src/forge/cli/job_type_commands.py": commands(),
  };
  for (const [path, content] of Object.entries(python)) checkLines(path, content);
  return {
    ...python,
    "sdk/typescript/src/job-params.ts": sdkParams(),
    "sdk/typescript/src/job-type-methods.ts": typescriptMethods(),
    "dashboard/src/jobs/declared-types.ts": dashboardTypes(),
    "dashboard/src/billing/type-colors.module.css": dashboardColors(),
  };
}
