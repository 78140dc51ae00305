import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useMemo, useSyncExternalStore } from "react";
import { createClient } from "../api/client";
import { SignedContext } from "../api/context";
import { FreshnessContext } from "../api/freshness";
import { useLiveEvents } from "../api/live-events";
import { createQueries } from "../api/queries";
import type { Session, SessionStore } from "../api/session";
import { Toasts } from "../ui/toasts";
import { router } from "./router";
import { SignIn } from "./sign-in";

/** Shows the pages to a signed-in user, otherwise the sign-in form at the same URL. */
export function App({ sessions }: { sessions: SessionStore }) {
  const state = useSyncExternalStore(sessions.subscribe, sessions.get);
  return (
    // The content security policy forbids style elements.
    <CSPProvider disableStyleElements>
      {state.status === "signed-out" && <SignIn sessions={sessions} notice={state.notice} />}
      {state.status === "signed-in" && (
        <SignedIn key={state.session.keyId} session={state.session} sessions={sessions} />
      )}
      <Toasts />
    </CSPProvider>
  );
}

/** Each session has a cache of its own: data read with one key is never shown under another. */
function SignedIn({ session, sessions }: { session: Session; sessions: SessionStore }) {
  const { queries, freshness } = useMemo(
    () => createQueries(() => sessions.expire(session.keyId)),
    [sessions, session.keyId],
  );
  const signed = useMemo(
    () => ({ forge: createClient(session.key), session, sessions }),
    [session, sessions],
  );
  useLiveEvents(signed, queries);
  return (
    <SignedContext value={signed}>
      <FreshnessContext value={freshness}>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </FreshnessContext>
    </SignedContext>
  );
}
