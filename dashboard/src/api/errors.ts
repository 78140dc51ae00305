import { ForgeAPIError, ForgeHTTPError } from "@forge/sdk";
import { sentence } from "../ui/format";

export interface Described {
  message: string;
  /** The message without the field's name, for display next to the field's label. */
  atField: string;
  code?: string;
  /** The name of the invalid field in the API. */
  param?: string;
  requestId?: string;
}

export function describeError(error: unknown): Described {
  if (error instanceof ForgeAPIError) {
    const { code, param, request_id } = error;
    const message = apiSentence(error.reason);
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
    // The request succeeded, but the response is not Forge's JSON. It is most likely the HTML of a
    // proxy, such as its sign-in page.
    if (error.status < 300) {
      return plain("The response did not come from Forge. The page tries again by itself.");
    }
    const where = error.request_id ? { requestId: error.request_id } : {};
    return { ...plain(`Forge answered with HTTP ${error.status}.`), ...where };
  }
  return plain(apiSentence(error instanceof Error ? error.message : String(error)));
}

const plain = (message: string): Described => ({ message, atField: message });

/**
 * Removes the field from the start of a message such as `"gpu_count": must be …` or
 * `"gpu_type" is required`.
 */
function withoutField(message: string, param: string): string {
  const quoted = `"${param}"`;
  if (message.startsWith(`${quoted}: `)) return apiSentence(message.slice(quoted.length + 2));
  return message === `${quoted} is required.` ? "This is required." : message;
}

/** Turns an API message such as `must be a number` into a sentence: `Must be a number.` */
const apiSentence = (text: string): string => text.trim() && sentence(text.trim());

/** Whether the key is expired, revoked or unknown. The user must then sign in with another key. */
export const isKeyRefused = (error: unknown): boolean =>
  error instanceof ForgeAPIError && (error.status === 401 || error.code === "invalid_api_key");

/** Whether there was no response, or an unusable one such as HTTP 503. A retry may succeed. */
export const isTransient = (error: unknown): boolean => error instanceof ForgeHTTPError;

export const isNotFound = (error: unknown): boolean =>
  error instanceof ForgeAPIError && error.status === 404;
