import { ForgeError } from "../../core/errors";

/** 422: this file can't be read as a table, and trying again won't help. */
export class Unreadable extends ForgeError {
  override readonly name = "Unreadable";

  /** @param row where it goes wrong, where that is known; the first row is 1, a header counts. */
  constructor(
    message: string,
    readonly row?: number,
  ) {
    super(422, "preview_failed", message);
  }
}
