import type { TenantScope } from "../../core/accounts/permissions";
import { SingleFlight } from "../../platform/concurrency/single-flight";
import { Loop } from "../../platform/loop";
import {
  findLastEventId,
  readEvents,
  type TenantEventRow,
} from "../../services/accounts/tenant-events";
import type { Context } from "../../services/context";
import { EventGaps } from "./event-gaps";

const POLL_MS = 250;
const BATCH = 5_000;
/**
 * When the feed starts, it checks which of the newest START_IDS event ids are missing. It queries
 * these ids again, because open transactions may still commit their events.
 */
const START_IDS = 1_000;
/** The maximum number of events that are buffered for a slow reader. */
const MAX_WAITING = 5_000;

/** Reads all tenants' events for all streams of a process, every 250 ms while a stream is open. */
export class EventFeed {
  private readonly readers = new Set<EventReader>();
  readonly loop: Loop;
  private readonly starting = new SingleFlight<void>();
  private gaps: EventGaps | undefined;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("event feed", POLL_MS, () => this.poll(), ctx);
  }

  /**
   * Opens a reader for a tenant scope. The reader receives the events that are committed from now
   * on.
   */
  async open(tenantScope: TenantScope, signal: AbortSignal): Promise<EventReader> {
    const reader = new EventReader(tenantScope, signal, () => {
      this.readers.delete(reader);
      // Without readers, the feed reads no events. Drop its position, so that the next stream does
      // not start with the events committed in the meantime.
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

  /**
   * The highest event id that the feed has read. A client can resume its stream from this id.
   * Events with lower ids may be committed later. So `listEventsSince` also returns the events
   * shortly before this id.
   */
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

  private async poll(): Promise<void> {
    // If the last reader closed while `begin` was running, `begin` has set `gaps` although there is
    // no reader. So clear `gaps` here.
    if (this.readers.size === 0) this.gaps = undefined;
    const { gaps } = this;
    if (!gaps) return;
    for (;;) {
      const events = await readEvents(this.ctx.pool, gaps.lastId, gaps.missing(), BATCH);
      // The last reader has closed during the query. A new reader may have started the feed again,
      // from another position. So drop the events of this query.
      if (this.gaps !== gaps) return;
      gaps.read(events.map(({ event_id: id }) => id));
      for (const event of events) for (const reader of this.readers) reader.add(event);
      if (events.length < BATCH) return;
    }
  }
}

/** Buffers the events of one stream, until `close`. */
export class EventReader {
  private waiting: TenantEventRow[] = [];
  private resolve: (() => void) | undefined;
  /** Whether events were dropped because the reader was too slow. */
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

  /** Returns the events since the last call. If there are none, waits up to `timeoutMs` for one. */
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
