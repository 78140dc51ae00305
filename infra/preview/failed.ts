import { ForgeError } from "../../core/errors";

/** 422: there is no preview of this file, and trying again won't make one. */
export class PreviewFailed extends ForgeError {
  override readonly name = "PreviewFailed";
  constructor(message: string) {
    super(422, "preview_failed", message);
  }
}
