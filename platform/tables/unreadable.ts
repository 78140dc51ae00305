import { ForgeError } from "../../core/errors";

/** 422: the file can't be read as a table. A retry does not help. */
export class Unreadable extends ForgeError {
  override readonly name = "Unreadable";

  /** @param row the invalid row's number, if known, starting at 1. A header counts as a row. */
  constructor(
    message: string,
    readonly row?: number,
  ) {
    super(422, "preview_failed", message);
  }
}

/**
 * 503: reading the file was interrupted, for example because the reader process was killed. The
 * file itself may be valid, and a later try may succeed.
 */
export class ReadInterrupted extends ForgeError {
  override readonly name = "ReadInterrupted";

  constructor(cause: string) {
    super(503, "unavailable", `reading the file was interrupted: ${cause}; try again shortly`);
  }
}
