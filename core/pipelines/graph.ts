import { closest, distance } from "fastest-levenshtein";
import { InvalidRequest } from "../errors";

interface Node {
  name: string;
  needs: string[];
}

/**
 * Sorts steps so that each comes after the steps it needs. Steps that are already sorted keep their
 * order.
 * @param at returns the path of the step with this index in the request, for error messages.
 * @throws InvalidRequest for a duplicate name, an unknown name, or a cycle.
 */
export function sortSteps<T extends Node>(steps: T[], at: (index: number) => string): T[] {
  const byName = new Map<string, T>();
  steps.forEach((step, index) => {
    if (byName.has(step.name)) {
      throw new InvalidRequest(`two steps are named "${step.name}"`, `${at(index)}.name`);
    }
    byName.set(step.name, step);
  });
  steps.forEach((step, index) => {
    for (const name of step.needs) requireStep(name, [...byName.keys()], `${at(index)}.needs`);
  });
  const ordered = new Set<T>();
  const visit = (step: T, path: string[]): void => {
    if (ordered.has(step)) return;
    const start = path.indexOf(step.name);
    if (start >= 0) {
      const cycle = [...path.slice(start), step.name].join(" → ");
      throw new InvalidRequest(`steps depend on each other: ${cycle}`, "steps");
    }
    for (const name of step.needs) {
      const needed = byName.get(name);
      if (needed) visit(needed, [...path, step.name]);
    }
    ordered.add(step);
  };
  for (const step of steps) visit(step, []);
  return [...ordered];
}

/** @throws InvalidRequest if no step has this name. The message suggests a similar name. */
export function requireStep(name: string, known: string[], param: string): void {
  if (known.includes(name)) return;
  const near = known.length > 0 ? closest(name, known) : "";
  const hint = distance(name, near) <= 2 ? `; did you mean "${near}"?` : "";
  throw new InvalidRequest(`there is no step "${name}"${hint}`, param);
}

/** The step and all steps that depend on it, directly or indirectly. */
export function downstreamOf(name: string, steps: Node[]): Set<string> {
  const found = new Set([name]);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const step of steps) if (step.needs.some((need) => found.has(need))) found.add(step.name);
  }
  return found;
}
