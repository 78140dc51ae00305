import { InvalidRequest } from "../errors";
import { checkCondition } from "./gate";
import { requireStep } from "./graph";
import { withParam } from "./references";

/**
 * Checks the field `gates` of a request.
 * @param names the steps that may have a gate.
 * @throws InvalidRequest for an unknown step, an invalid condition, and two gates of one step.
 */
export function checkGates(gates: { step: string; condition: string }[], names: string[]): void {
  gates.forEach(({ step, condition }, index) => {
    requireStep(step, names, `gates.${index}.step`);
    withParam(`gates.${index}.condition`, () => checkCondition(condition));
    if (gates.findIndex((other) => other.step === step) !== index) {
      throw new InvalidRequest(`step "${step}" has two gates; join them with &&`, `gates.${index}`);
    }
  });
}
