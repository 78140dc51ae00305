/** An API error with a stable code (contract.md, Errors). */
export class ForgeError extends Error {
  override readonly name: string = "ForgeError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param?: string,
    readonly details?: Record<string, unknown>,
  ) {
    super(message);
  }
}

/** 400: a field of the request is wrong; `param` names it. */
export class InvalidRequest extends ForgeError {
  override readonly name = "InvalidRequest";
  constructor(message: string, param?: string, details?: Record<string, unknown>) {
    super(400, "invalid_request", message, param, details);
  }
}

/**
 * 404 `<thing>_not_found`. Also thrown for an object of another tenant, so that the caller can't
 * learn that the object exists.
 */
export class NotFound extends ForgeError {
  override readonly name = "NotFound";
  constructor(thing: string, id: string, param?: string) {
    super(404, `${thing}_not_found`, `there is no ${thing.replaceAll("_", " ")} "${id}"`, param);
  }
}

/** 409, with a specific code. */
export class Conflict extends ForgeError {
  override readonly name = "Conflict";
  constructor(code: string, message: string, param?: string) {
    super(409, code, message, param);
  }
}

/** 503: a dependency of Forge is unavailable. The caller may retry. */
export class Unavailable extends ForgeError {
  override readonly name = "Unavailable";
  constructor(message: string) {
    super(503, "unavailable", message);
  }
}
