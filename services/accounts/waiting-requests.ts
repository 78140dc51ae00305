import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../core/accounts/permissions";
import type { Cap } from "../../platform/config/limits";
import { Loop, type LoopReporting } from "../../platform/loop";
import type { Queryable } from "../../platform/postgres/pool";
import type { Component } from "../../platform/service";
import type { Signals } from "../../platform/signals";
import { listInvalidKeys } from "./keys";
import { requireBelow } from "./quota-exceeded";

const SWEEP_MS = 1_000;

/** Why a waiting request ends. `key-revoked`: its key was revoked or has expired. */
type EndReason = "hung-up" | "key-revoked" | "closing" | "time-out";

export interface WaitingRequest {
  /** Aborts when the request must end. Its reason is an EndReason. */
  signal: AbortSignal;
}

/** The cap that a request counts against while it waits. */
type WaitingCap = "waiting_requests" | "waiting_polls" | "open_uploads";

interface WaitOptions {
  /** The request ends after this many seconds. */
  maxS?: number;
  /**
   * The cap that counts the request. Default: `waiting_requests` for a user's key, else
   * `waiting_polls`.
   */
  as?: WaitingCap;
}

/**
 * Registry of requests that stay open: polls of workers, streams of events, uploads, calls of
 * deployed models. Each process limits their number per tenant. A request ends when its client
 * disconnects, and when its key expires or any process revokes the key.
 */
export class WaitingRequests implements Component {
  readonly name = "waiting-requests";
  /** By key id. */
  private readonly waiting = new Map<string, Set<AbortController>>();
  /** By cap and tenant. */
  private readonly counts = new Map<string, number>();
  private readonly loop: Loop;
  private closed = false;

  constructor(
    private readonly db: Queryable,
    private readonly signals: Signals,
    private readonly caps: Record<WaitingCap, Cap>,
    watchers: LoopReporting,
  ) {
    // The loop ends requests of expired keys, and of revoked keys whose notification was lost.
    this.loop = new Loop("waiting-requests", SWEEP_MS, () => this.sweep(), watchers);
  }

  start(): void {
    this.signals.on("revoked", this.onRevoked);
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.signals.off("revoked", this.onRevoked);
    await this.loop.stop();
  }

  /**
   * Counts this request as waiting until its response is sent or its client disconnects.
   *
   * @throws 429 `quota_exceeded` if the tenant has reached the cap.
   */
  register(
    request: FastifyRequest,
    { keyId, userId, scope }: Pick<Principal, "keyId" | "userId" | "scope">,
    reply: FastifyReply,
    { maxS, as = scope === "user" ? "waiting_requests" : "waiting_polls" }: WaitOptions = {},
  ): WaitingRequest {
    requireBelow(this.caps[as], this.countOf(userId, as));
    const ofKey = this.waiting.get(keyId) ?? new Set();
    const controller = new AbortController();
    const { socket } = request.raw;
    // If the client has disconnected already, no close event will follow: end the request here.
    if (socket.destroyed || reply.raw.closed) {
      end(controller, "hung-up");
      return { signal: controller.signal };
    }
    this.waiting.set(keyId, ofKey.add(controller));
    this.count(userId, as, 1);
    // This listener is removed when the response closes: later requests use the same connection.
    const onClose = (): void => end(controller, "hung-up");
    socket.once("close", onClose);
    const timer =
      maxS === undefined ? undefined : setTimeout(() => end(controller, "time-out"), maxS * 1000);
    reply.raw.once("close", () => {
      clearTimeout(timer);
      socket.off("close", onClose);
      ofKey.delete(controller);
      this.count(userId, as, -1);
      if (ofKey.size === 0 && this.waiting.get(keyId) === ofKey) this.waiting.delete(keyId);
    });
    if (this.closed) end(controller, "closing");
    return { signal: controller.signal };
  }

  /** The number of a tenant's waiting requests in this process. */
  countOf(userId: string, as: WaitingCap): number {
    return this.counts.get(`${as} ${userId}`) ?? 0;
  }

  private count(userId: string, as: WaitingCap, by: 1 | -1): void {
    const next = this.countOf(userId, as) + by;
    if (next > 0) this.counts.set(`${as} ${userId}`, next);
    else this.counts.delete(`${as} ${userId}`);
  }

  /** Ends all waiting requests, because the server is stopping. */
  close(): void {
    this.closed = true;
    for (const ofKey of this.waiting.values()) for (const one of ofKey) end(one, "closing");
  }

  private readonly onRevoked = (keyIds: string[]): void => {
    for (const keyId of keyIds) {
      for (const one of this.waiting.get(keyId) ?? []) end(one, "key-revoked");
    }
  };

  private async sweep(): Promise<void> {
    const keyIds = [...this.waiting.keys()];
    if (keyIds.length > 0) this.onRevoked(await listInvalidKeys(this.db, keyIds));
  }
}

function end(controller: AbortController, why: EndReason): void {
  controller.abort(why);
}
