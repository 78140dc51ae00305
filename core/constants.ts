/** More attempts than this no job gets, whatever it asks for (contract.md, Constants). */
export const MAX_ATTEMPTS = 3;
/** Epochs of a `train` that names none (spec.md, 8). */
export const DEFAULT_EPOCHS = 3;
/** The longest a next_job request may stay parked, in seconds. */
export const MAX_WAIT_SECONDS = 50;
