/** The step can never succeed, so it fails without retry, with this message. */
export class StepFault extends Error {
  override readonly name = "StepFault";
  constructor(
    readonly code: "step_invalid" | "budget_exhausted" | "nothing_to_choose",
    message: string,
  ) {
    super(message);
  }
}
