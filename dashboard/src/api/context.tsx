import type { Forge } from "@forge/sdk";
import { createContext, useContext } from "react";
import type { Session, SessionStore } from "./session";

export interface Signed {
  forge: Forge;
  session: Session;
  sessions: SessionStore;
}

export const SignedContext = createContext<Signed | undefined>(undefined);

/** The client and the session. Only for components shown to a signed-in user. */
export function useSigned(): Signed {
  const signed = useContext(SignedContext);
  if (!signed) throw new Error("useSigned outside of a session");
  return signed;
}

export const useForge = (): Forge => useSigned().forge;
