import type { ApiKey, NewApiKey } from "@forge/sdk";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useForge, useSigned } from "../api/context";
import { toast } from "../ui/toasts";
import type { Scope } from "./key-state";

/** Keys change by hand, and their last use is told to the minute. */
const POLL_MS = 15_000;

/** All keys, or all sessions: a tenant has at most some hundred. */
export function useKeys(sessions: boolean) {
  const forge = useForge();
  return useQuery({
    queryKey: ["keys", sessions ? "sessions" : "keys"],
    queryFn: ({ signal }) => forge.apiKeys.list({ sessions }, { signal }).toArray(),
    refetchInterval: POLL_MS,
  });
}

/** The ids that this page lives on: its session's, and that of the key it was exchanged for. */
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

/** Not repeated by itself: the key's text is told once, so a lost answer is a key that nobody knows. */
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
