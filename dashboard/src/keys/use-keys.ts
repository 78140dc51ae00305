import type { ApiKey, NewApiKey } from "@forge/sdk";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useForge, useSigned } from "../api/context";
import { toast } from "../ui/toasts";
import type { Scope } from "./key-state";

/**
 * A slow poll is enough: people change keys by hand, and Forge updates the time of a key's last use
 * at most once a minute.
 */
const POLL_MS = 15_000;

/** Reads all keys, or all sessions, at once: a tenant has a few hundred at most. */
export function useKeys(sessions: boolean) {
  const forge = useForge();
  return useQuery({
    queryKey: ["keys", sessions ? "sessions" : "keys"],
    queryFn: ({ signal }) => forge.apiKeys.list({ sessions }, { signal }).toArray(),
    refetchInterval: POLL_MS,
  });
}

/** The id of the session's own key and, if known, the id of the key used to sign in. */
export function useOwnKeyIds(sessions: readonly ApiKey[] | undefined): readonly string[] {
  const { session } = useSigned();
  const own = sessions?.find(({ key_id }) => key_id === session.keyId);
  return own?.session_of ? [session.keyId, own.session_of] : [session.keyId];
}

export interface NewKey {
  name: string;
  scope: Scope;
  expiresAt: Date | undefined;
  workers: number | undefined;
}

/**
 * Creates a key. Not retried if the response is lost: a retry would create a second key, and the
 * lost key would stay valid.
 */
export function useCreateKey(onDone: (key: NewApiKey) => void) {
  const forge = useForge();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, scope, expiresAt, workers }: NewKey) =>
      forge.apiKeys.create(name, {
        scope,
        ...(expiresAt ? { expires_at: expiresAt } : {}),
        ...(workers ? { workers } : {}),
      }),
    onSuccess: onDone,
    onSettled: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  });
}

export function useRevokeKey() {
  const forge = useForge();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key_id }: ApiKey) => forge.apiKeys.revoke(key_id),
    onSuccess: (_, { name }) => toast.ok(`The key ${name} is revoked.`),
    onSettled: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  });
}
