import { ForgeAPIError, ForgeHTTPError } from "@forge/sdk";

export interface Described {
  message: string;
  /** The same message without the API's name of the field. Shown next to the field's label. */
  atField: string;
  code?: string;
  /** The invalid field. */
  param?: string;
  requestId?: string;
}

/** Turns a failed call into a message for the user. */
export function describeError(error: unknown): Described {
  if (error instanceof ForgeAPIError) {
    const { code, param, request_id } = error;
    const message = sentence(error.reason);
    return {
      message,
      atField: param ? withoutField(message, param) : message,
      code,
      ...(param ? { param } : {}),
      ...(request_id ? { requestId: request_id } : {}),
    };
  }
  if (error instanceof ForgeHTTPError) {
    if (error.status === undefined) {
      return plain("Forge can't be reached. The page tries again by itself.");
    }
    // Most likely an HTML page: a proxy's sign-in or error page.
    if (error.status < 300) {
      return plain("The response did not come from Forge. The page tries again by itself.");
    }
    const where = error.request_id ? { requestId: error.request_id } : {};
    return { ...plain(`Forge answered with HTTP ${error.status}.`), ...where };
  }
  return plain(sentence(error instanceof Error ? error.message : String(error)));
}

const plain = (message: string): Described => ({ message, atField: message });

/**
 * The API's messages start with the field's name: `"gpu_count": must be …`, `"gpu_type" is
 * required`.
 */
function withoutField(message: string, param: string): string {
  const quoted = `"${param}"`;
  if (message.startsWith(`${quoted}: `)) return sentence(message.slice(quoted.length + 2));
  return message === `${quoted} is required.` ? "This is required." : message;
}

/** The API's messages start in lower case and have no full stop. */
const sentence = (text: string): string => {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
};

/**
 * The key is expired, revoked or unknown: no call works until the user signs in with another key.
 */
export const isKeyRefused = (error: unknown): boolean =>
  error instanceof ForgeAPIError && (error.status === 401 || error.code === "invalid_api_key");

/** No answer, or a server error: the same call may work in a moment. */
export const isTransient = (error: unknown): boolean => error instanceof ForgeHTTPError;

export const isNotFound = (error: unknown): boolean =>
  error instanceof ForgeAPIError && error.status === 404;
