import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../core/accounts/principal";
import type { Cap } from "../../platform/config/limits";
import { Loop, type Watchers } from "../../platform/loop";
import type { Queryable } from "../../platform/postgres/pool";
import type { Component } from "../../platform/service";
import type { Signals } from "../../platform/signals";
import { listDeadKeys } from "./keys";
import { requireBelow } from "./quota-exceeded";

const SWEEP_MS = 1_000;

/** Why a parked request must end: nobody waits for it, its key is dead, the server stops, its time is up. */
type Parting = "hung-up" | "key-revoked" | "closing" | "time-out";

export interface WaitingRequest {
  /** Aborts with a Parting as its reason. */
  signal: AbortSignal;
}

/** What a request counts as while it waits. */
type Waiting = "waiting_requests" | "waiting_polls" | "open_uploads";

interface Parked {
  /** It is ended then, in seconds. */
  maxS?: number;
  /** By default what its key is for. */
  as?: Waiting;
}

/**
 * Requests that wait for something to happen: polls of workers, streams of events. A tenant may have so
 * many in this process, and they end with their key, wherever it is revoked, and with their client.
 */
export class WaitingRequests implements Component {
  readonly name = "parking";
  /** By key. */
  private readonly parked = new Map<string, Set<AbortController>>();
  /** By tenant and what they count as. */
  private readonly counts = new Map<string, number>();
  private readonly loop: Loop;
  private closed = false;

  constructor(
    private readonly db: Queryable,
    private readonly signals: Signals,
    private readonly caps: Record<Waiting, Cap>,
    watchers: Watchers,
  ) {
    // For keys that expire, and for a notification that was lost.
    this.loop = new Loop("parking", SWEEP_MS, () => this.sweep(), watchers);
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
   * Counts this request as parked until its answer is out, or its client is gone.
   *
   * @throws 429 `quota_exceeded` when the tenant has as many parked requests as it may.
   */
  park(
    request: FastifyRequest,
    { keyId, userId, scope }: Pick<Principal, "keyId" | "userId" | "scope">,
    reply: FastifyReply,
    { maxS, as = scope === "user" ? "waiting_requests" : "waiting_polls" }: Parked = {},
  ): WaitingRequest {
    requireBelow(this.caps[as], this.countOf(userId, as));
    const ofKey = this.parked.get(keyId) ?? new Set();
    const controller = new AbortController();
    const { socket } = request.raw;
    // Its client went while we looked something up: nothing will tell us again.
    if (socket.destroyed || reply.raw.closed) {
      end(controller, "hung-up");
      return { signal: controller.signal };
    }
    this.parked.set(keyId, ofKey.add(controller));
    this.count(userId, as, 1);
    // Connections are kept alive over many requests, so each lets go of the one it came by.
    const onClose = (): void => end(controller, "hung-up");
    socket.once("close", onClose);
    const timer =
      maxS === undefined ? undefined : setTimeout(() => end(controller, "time-out"), maxS * 1000);
    reply.raw.once("close", () => {
      clearTimeout(timer);
      socket.off("close", onClose);
      ofKey.delete(controller);
      this.count(userId, as, -1);
      if (ofKey.size === 0 && this.parked.get(keyId) === ofKey) this.parked.delete(keyId);
    });
    if (this.closed) end(controller, "closing");
    return { signal: controller.signal };
  }

  /** How many of a tenant's wait in this process. */
  countOf(userId: string, as: Waiting): number {
    return this.counts.get(`${as} ${userId}`) ?? 0;
  }

  private count(userId: string, as: Waiting, by: 1 | -1): void {
    const next = this.countOf(userId, as) + by;
    if (next > 0) this.counts.set(`${as} ${userId}`, next);
    else this.counts.delete(`${as} ${userId}`);
  }

  /** Ends all of them: the server is going. */
  close(): void {
    this.closed = true;
    for (const ofKey of this.parked.values()) for (const one of ofKey) end(one, "closing");
  }

  private readonly onRevoked = (keyIds: string[]): void => {
    for (const keyId of keyIds) {
      for (const one of this.parked.get(keyId) ?? []) end(one, "key-revoked");
    }
  };

  private async sweep(): Promise<void> {
    const keyIds = [...this.parked.keys()];
    if (keyIds.length > 0) this.onRevoked(await listDeadKeys(this.db, keyIds));
  }
}

function end(controller: AbortController, why: Parting): void {
  controller.abort(why);
}
