import type { ApiKey } from "@forge/sdk";
import { ConfirmDialog } from "../ui/dialog";
import { Notice } from "../ui/error-banner";
import { plural } from "../ui/format";
import { useRevokeKey } from "./use-keys";

interface Props {
  apiKey: ApiKey | undefined;
  /** The live keys and sessions that are revoked together with this key. */
  children: readonly ApiKey[];
  isOwn: boolean;
  onClose: () => void;
}

/** Asks for confirmation before a key is revoked, and lists what will stop working. */
export function RevokeKeyDialog({ apiKey, children, isOwn, onClose }: Props) {
  const revoke = useRevokeKey();
  const isSession = apiKey?.session_of != null;
  return (
    <ConfirmDialog
      open={apiKey !== undefined}
      onClose={onClose}
      title={isSession ? "End this session?" : `Revoke ${apiKey?.name}?`}
      action={isSession ? "End the session" : "Revoke the key"}
      change={revoke}
      refused="The key was not revoked"
      onConfirm={(close) => apiKey && revoke.mutate(apiKey, { onSuccess: close })}
    >
      {isOwn && (
        <Notice tone="warn">
          <strong>You are signed in with it.</strong> This page, and every other that uses it, is
          signed out at once.
        </Notice>
      )}
      {apiKey && <p>{effectOf(apiKey)}</p>}
      {children.length > 0 && <p>{endsToo(children)}</p>}
      <p>This can't be undone. Jobs that it has submitted go on.</p>
    </ConfirmDialog>
  );
}

function effectOf({ scope, session_of, last4 }: ApiKey): string {
  if (session_of !== null) return "Everyone who uses this session has to sign in again.";
  if (scope === "worker") {
    return `Workers that use the key that ends with ${last4} can no longer fetch jobs or report results. Each is marked dead after 30 s of silence, and its job goes back to the queue.`;
  }
  return `Every request with the key that ends with ${last4} is refused with 403 from now on. Open streams and waiting requests end.`;
}

const MOST_NAMES = 5;

function endsToo(children: readonly ApiKey[]): string {
  const keys = children.filter(({ session_of }) => session_of === null);
  const names = keys.slice(0, MOST_NAMES).map(({ name }) => name);
  const rest = keys.length - names.length;
  const sessions = children.length - keys.length;
  const parts = [
    keys.length > 0 &&
      `${plural(keys.length, "key")} that it made (${names.join(", ")}${rest > 0 ? `, and ${rest} more` : ""})`,
    sessions > 0 && plural(sessions, "session"),
  ].filter(Boolean);
  return `With it ${children.length === 1 ? "ends" : "end"} ${parts.join(" and ")}.`;
}
