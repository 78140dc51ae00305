/** More attempts than this no job gets, whatever it asks for (contract.md, Constants). */
export const MAX_ATTEMPTS = 3;
/** Epochs of a `train` that names none (spec.md, 8). */
export const DEFAULT_EPOCHS = 3;
