import { ForgeAPIError, ForgeHTTPError } from "@forge/sdk";

export interface Described {
  message: string;
  code?: string;
  /** The field that is wrong. */
  param?: string;
  requestId?: string;
}

/** What to tell a person about a failed call. */
export function describeError(error: unknown): Described {
  if (error instanceof ForgeAPIError) {
    const { code, param, request_id } = error;
    return {
      message: sentence(error.reason),
      code,
      ...(param ? { param } : {}),
      ...(request_id ? { requestId: request_id } : {}),
    };
  }
  if (error instanceof ForgeHTTPError) {
    if (error.status === undefined) {
      return { message: "Forge can't be reached. The page tries again by itself." };
    }
    const where = error.request_id ? { requestId: error.request_id } : {};
    return { message: `Forge answered with HTTP ${error.status}.`, ...where };
  }
  return { message: sentence(error instanceof Error ? error.message : String(error)) };
}

/** The API's words begin in lower case and have no full stop. */
const sentence = (text: string): string => {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
};

/** The key is expired, revoked or unknown: nothing will work until there is another. */
export const isKeyRefused = (error: unknown): boolean =>
  error instanceof ForgeAPIError && (error.status === 401 || error.code === "invalid_api_key");

/** No answer, or a server's trouble: the same call may work in a moment. */
export const mayPass = (error: unknown): boolean => error instanceof ForgeHTTPError;

export const isNotFound = (error: unknown): boolean =>
  error instanceof ForgeAPIError && error.status === 404;
