import type { FastifyReply, FastifyRequest } from "fastify";
import { ForgeError } from "../../core/errors";
import type { Scope } from "../api-keys";
import { listDeadKeys } from "../database/keys";
import type { Queryable } from "../database/pool";
import type { Logger } from "../logger";
import { Loop } from "../loop";
import type { Part } from "../service";
import type { Signals } from "../signals";
import type { Principal } from "./principal";

const SWEEP_MS = 1_000;

/** Why a parked request must end: nobody waits for it, its key is dead, the server stops, its time is up. */
type Parting = "hung-up" | "key-revoked" | "closing" | "time-out";

export interface ParkedRequest {
  /** Aborts with a Parting as its reason. */
  signal: AbortSignal;
}

/**
 * Requests that wait for something to happen: polls of workers, streams of events. A key may have so
 * many in this process, and they end with the key, wherever it is revoked, and with their client.
 */
export class ParkingLot implements Part {
  readonly name = "parking";
  private readonly parked = new Map<string, Set<AbortController>>();
  private readonly loop: Loop;
  private closed = false;

  constructor(
    private readonly db: Queryable,
    private readonly signals: Signals,
    private readonly limits: Record<Scope, number>,
    logger: Logger,
  ) {
    // For keys that expire, and for a notification that was lost.
    this.loop = new Loop("parking", SWEEP_MS, () => this.sweep(), logger);
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
   * Counts this request as parked until its answer is out, or its client is gone; ends it after `maxS`
   * seconds, where given.
   *
   * @throws 429 when the key has as many parked requests as it may.
   */
  park(
    request: FastifyRequest,
    { keyId, scope }: Principal,
    reply: FastifyReply,
    maxS?: number,
  ): ParkedRequest {
    const ofKey = this.parked.get(keyId) ?? new Set();
    if (ofKey.size >= this.limits[scope]) {
      const message = `a ${scope} key may have ${this.limits[scope]} waiting requests at once`;
      throw new ForgeError(429, "rate_limited", message);
    }
    const controller = new AbortController();
    const { socket } = request.raw;
    // Its client went while we looked something up: nothing will tell us again.
    if (socket.destroyed || reply.raw.closed) {
      end(controller, "hung-up");
      return { signal: controller.signal };
    }
    this.parked.set(keyId, ofKey.add(controller));
    // Connections are kept alive over many requests, so each lets go of the one it came by.
    const onClose = (): void => end(controller, "hung-up");
    socket.once("close", onClose);
    const timer =
      maxS === undefined ? undefined : setTimeout(() => end(controller, "time-out"), maxS * 1000);
    reply.raw.once("close", () => {
      clearTimeout(timer);
      socket.off("close", onClose);
      ofKey.delete(controller);
      if (ofKey.size === 0 && this.parked.get(keyId) === ofKey) this.parked.delete(keyId);
    });
    if (this.closed) end(controller, "closing");
    return { signal: controller.signal };
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
