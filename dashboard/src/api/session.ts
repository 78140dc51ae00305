import { type Forge, ForgeAPIError } from "@forge/sdk";
import { createClient } from "./client";
import { readFromTab, writeToTab } from "./tab-storage";

export interface Session {
  key: string;
  keyId: string;
  /** The tenant. */
  userId: string;
  scope: "user" | "admin";
  /**
   * True: the key was created for this browser. It expires within 12 hours, and signing out revokes
   * it. False: the user pasted the key, and signing out does not revoke it.
   */
  isExchangedKey: boolean;
}

export type SessionState =
  | { status: "starting" }
  | { status: "signed-out"; notice?: string }
  | { status: "signed-in"; session: Session };

/** The pasted key was not accepted. The message says why. */
export class SignInRefused extends Error {}

const STORED = "forge.session";
/** How long to wait for another tab to share its session. */
const SHARE_MS = 150;

type Message =
  | { type: "ask" }
  | { type: "session"; session: Session }
  /**
   * The session of this key has ended. The sign-in form shows `notice`, which is absent if the user
   * signed out.
   */
  | { type: "ended"; keyId: string; notice?: string };

const EXPIRED = "Your key has expired or was revoked. Sign in again to continue where you were.";

/**
 * The signed-in session. The key is kept in memory and in sessionStorage, which is deleted with the
 * tab. The key is never in localStorage, a cookie or a URL. Open tabs of this origin share the
 * session by messages. When the session ends, a message tells the other tabs, so that an idle tab
 * does not keep showing the session's content.
 */
export class SessionStore {
  private state: SessionState;
  private readonly listeners = new Set<() => void>();
  private readonly channel =
    "BroadcastChannel" in window ? new BroadcastChannel(STORED) : undefined;
  /**
   * Ids of keys whose sessions have ended. This tab does not accept these sessions again: a tab
   * that has not received the message `ended` yet may still send them.
   */
  private readonly ended = new Set<string>();
  /** Whether to accept a session that another tab sends. */
  private accepts: (session: Session) => boolean = () => true;
  private asking: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    const session = readStored();
    this.state = session ? { status: "signed-in", session } : { status: "starting" };
    this.channel?.addEventListener("message", ({ data }: MessageEvent<Message>) =>
      this.onMessage(data),
    );
    if (!session) this.ask(() => true);
  }

  readonly get = (): SessionState => this.state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** @throws SignInRefused for a worker's key; the SDK's error for a key that Forge refuses. */
  async signIn(pasted: string): Promise<void> {
    const key = pasted.trim();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new SignInRefused(
        "This is not a key: it contains spaces or invalid characters. Copy only the key.",
      );
    }
    const client = createClient(key);
    const { scope, user_id, key_id } = await client.service.ping();
    if (scope !== "user" && scope !== "admin") {
      throw new SignInRefused(
        "This is a worker key: it lets a machine fetch jobs and nothing else. Paste a user key or an admin key.",
      );
    }
    const own = await exchange(client);
    const session: Session = {
      key: own?.key ?? key,
      keyId: own?.key_id ?? key_id,
      userId: user_id,
      scope: scope === "admin" ? "admin" : "user",
      isExchangedKey: own !== undefined,
    };
    this.enter(session);
    this.send({ type: "session", session });
  }

  /** Ends the session in every tab and revokes the key created for it. */
  signOut(): void {
    if (this.state.status !== "signed-in") return;
    const { session } = this.state;
    if (session.isExchangedKey) {
      // Not awaited. If the call fails, the key still expires within 12 hours.
      createClient(session.key)
        .apiKeys.revoke(session.keyId)
        .catch(() => undefined);
    }
    this.end(session);
    this.set({ status: "signed-out" });
    this.send({ type: "ended", keyId: session.keyId });
  }

  /**
   * Ends the session of a refused key. Ignores a late refusal of an earlier key. Keeps the URL, so
   * that signing in returns to the same page.
   */
  expire(keyId: string): void {
    if (this.state.status !== "signed-in" || this.state.session.keyId !== keyId) return;
    this.send({ type: "ended", keyId, notice: EXPIRED });
    this.replace(this.state.session, EXPIRED);
  }

  /**
   * Ends the session. If another tab has a session of the same tenant and scope, switches to
   * it. Otherwise signs out.
   */
  private replace(session: Session, notice: string): void {
    this.end(session);
    this.ask(({ userId, scope }) => userId === session.userId && scope === session.scope, notice);
  }

  /**
   * Asks the other tabs for a session. If no tab sends one that `accepts` allows, signs out with
   * this notice.
   */
  private ask(accepts: (session: Session) => boolean, notice?: string): void {
    this.accepts = accepts;
    this.set({ status: "starting" });
    this.send({ type: "ask" });
    clearTimeout(this.asking);
    this.asking = setTimeout(() => {
      if (this.state.status !== "starting") return;
      this.accepts = () => true;
      this.set({ status: "signed-out", ...(notice ? { notice } : {}) });
    }, SHARE_MS);
  }

  private enter(session: Session): void {
    this.accepts = () => true;
    clearTimeout(this.asking);
    store(session);
    this.set({ status: "signed-in", session });
  }

  private end({ keyId }: Session): void {
    store(undefined);
    this.ended.add(keyId);
  }

  private set(state: SessionState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  private send(message: Message): void {
    this.channel?.postMessage(message);
  }

  private onMessage(message: Message): void {
    const { state } = this;
    if (message.type === "ask" && state.status === "signed-in") {
      this.send({ type: "session", session: state.session });
    }
    if (message.type === "session" && state.status !== "signed-in") {
      const { session } = message;
      if (!this.ended.has(session.keyId) && this.accepts(session)) this.enter(session);
    }
    if (message.type !== "ended") return;
    this.ended.add(message.keyId);
    if (state.status !== "signed-in" || state.session.keyId !== message.keyId) return;
    if (message.notice) this.replace(state.session, message.notice);
    else {
      this.end(state.session);
      this.set({ status: "signed-out" });
    }
  }
}

/** Uses the pasted key to create a key for this browser. Undefined if the server can't do so. */
async function exchange(client: Forge): Promise<{ key: string; key_id: string } | undefined> {
  try {
    const { key, key_id } = await client.apiKeys.createSession();
    return key === null ? undefined : { key, key_id };
  } catch (error) {
    if (error instanceof ForgeAPIError && (error.status === 404 || error.status === 405))
      return undefined;
    throw error;
  }
}

function readStored(): Session | undefined {
  try {
    return (JSON.parse(readFromTab(STORED) ?? "null") as Session | null) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the session over a reload. If the browser forbids storage, a reload ends the session. */
function store(session: Session | undefined): void {
  writeToTab(STORED, session && JSON.stringify(session));
}
