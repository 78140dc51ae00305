import { closest, distance } from "fastest-levenshtein";
import { InvalidRequest } from "../errors";

interface Node {
  name: string;
  needs: string[];
}

/**
 * The steps in an order in which each comes after what it needs, and otherwise as they were given.
 *
 * @param at where a step was given, for what is said of it.
 * @throws InvalidRequest for a name given twice, one that nobody has, and steps that need each other.
 */
export function inOrder<T extends Node>(steps: T[], at: (index: number) => string): T[] {
  const byName = new Map<string, T>();
  steps.forEach((step, index) => {
    if (byName.has(step.name)) {
      throw new InvalidRequest(`two steps are called "${step.name}"`, `${at(index)}.name`);
    }
    byName.set(step.name, step);
  });
  steps.forEach((step, index) => {
    for (const name of step.needs) requireStep(name, [...byName.keys()], `${at(index)}.needs`);
  });
  const ordered = new Set<T>();
  const place = (step: T, waiting: string[]): void => {
    if (ordered.has(step)) return;
    const from = waiting.indexOf(step.name);
    if (from >= 0) {
      const circle = [...waiting.slice(from), step.name].join(" → ");
      throw new InvalidRequest(`steps need each other: ${circle}`, "steps");
    }
    for (const name of step.needs) {
      const needed = byName.get(name);
      if (needed) place(needed, [...waiting, step.name]);
    }
    ordered.add(step);
  };
  for (const step of steps) place(step, []);
  return [...ordered];
}

/** @throws InvalidRequest, with the nearest name, for one that no step has. */
export function requireStep(name: string, known: string[], param: string): void {
  if (known.includes(name)) return;
  const near = known.length > 0 ? closest(name, known) : "";
  const hint = distance(name, near) <= 2 ? `; did you mean "${near}"?` : "";
  throw new InvalidRequest(`there is no step "${name}"${hint}`, param);
}

/** The step itself and every step that depends on it, however far. */
export function downstreamOf(name: string, steps: Node[]): Set<string> {
  const found = new Set([name]);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const step of steps) if (step.needs.some((need) => found.has(need))) found.add(step.name);
  }
  return found;
}
