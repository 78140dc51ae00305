import type { TenantScope } from "../../core/accounts/principal";
import { Shared } from "../../platform/concurrency/shared";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import {
  findLastEventId,
  readEvents,
  type TenantEventRow,
} from "../../services/accounts/tenant-events";
import type { Context } from "../../services/context";
import { EventGaps } from "./event-gaps";

const LOOK_MS = 250;
const BATCH = 5_000;
/** Ids before the newest one that may belong to transactions under way when the feed starts. */
const START_IDS = 1_000;
/** Events that wait for a slow reader. */
const MAX_WAITING = 5_000;

/**
 * Events of all tenants, read once for all streams of this process: by one query every quarter of a second, by
 * none while there is no stream.
 */
export class EventFeed implements Component {
  readonly name = "event feed";
  private readonly readers = new Set<EventReader>();
  private readonly loop: Loop;
  private readonly starting = new Shared<void>();
  private gaps: EventGaps | undefined;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("event feed", LOOK_MS, () => this.look(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  /** Every event that this viewer may see and that is committed from now on goes to the reader. */
  async open(tenantScope: TenantScope, signal: AbortSignal): Promise<EventReader> {
    const reader = new EventReader(tenantScope, signal, () => {
      this.readers.delete(reader);
      // Else the next stream would begin with all that happened in between.
      if (this.readers.size === 0) this.gaps = undefined;
    });
    this.readers.add(reader);
    try {
      if (!this.gaps) await this.starting.do("start", () => this.begin());
    } catch (error) {
      reader.close();
      throw error;
    }
    return reader;
  }

  /** The newest event that was read; a stream that is resumed after it misses none. */
  get lastId(): number {
    return this.gaps?.lastId ?? 0;
  }

  private async begin(): Promise<void> {
    const { pool, clock } = this.ctx;
    const lastId = await findLastEventId(pool);
    const first = Math.max(0, lastId - START_IDS);
    const known = await readEvents(pool, first, [], START_IDS);
    const ids = known.map(({ event_id: id }) => id).filter((id) => id <= lastId);
    this.gaps = new EventGaps(first, () => clock.nowMs());
    this.gaps.read([...ids, lastId]);
  }

  private async look(): Promise<void> {
    // The last reader may have left while the feed was starting.
    if (this.readers.size === 0) this.gaps = undefined;
    const { gaps } = this;
    if (!gaps) return;
    for (;;) {
      const events = await readEvents(this.ctx.pool, gaps.lastId, gaps.missing(), BATCH);
      gaps.read(events.map(({ event_id: id }) => id));
      for (const event of events) for (const reader of this.readers) reader.add(event);
      if (events.length < BATCH) return;
    }
  }
}

/** The events of one stream, until `close`. */
export class EventReader {
  private waiting: TenantEventRow[] = [];
  private resolve: (() => void) | undefined;
  /** It reads too slowly, and has missed events. */
  hasMissed = false;

  constructor(
    private readonly tenantScope: TenantScope,
    private readonly signal: AbortSignal,
    private readonly onClose: () => void,
  ) {
    signal.addEventListener("abort", this.wake);
  }

  add(event: TenantEventRow): void {
    if (this.tenantScope !== null && event.user_id !== this.tenantScope) return;
    if (this.waiting.length >= MAX_WAITING) this.hasMissed = true;
    else this.waiting.push(event);
    this.wake();
  }

  /** What has come since the last call; waits so long for something. */
  async next(timeoutMs: number): Promise<TenantEventRow[]> {
    if (this.waiting.length === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const events = this.waiting;
    this.waiting = [];
    return events;
  }

  close(): void {
    this.signal.removeEventListener("abort", this.wake);
    this.onClose();
  }

  private readonly wake = (): void => this.resolve?.();
}
