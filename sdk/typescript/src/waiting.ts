// Waiting for a job's end: by its events where they arrive, by asking where they don't.
//
// Each round asks for the job, then listens to one connection of its events until the job may have
// ended. A connection that tells nothing, e.g. through a proxy that holds it back, is as good as a
// pause between two questions.
import { platform } from "#platform";
import type { Deadline } from "./deadline.ts";
import { ForgeAPIError, ForgeHTTPError } from "./errors.ts";
import { connect, Following, GONE, KEEP_ALIVE_MS, LIFE } from "./following.ts";
import type { Job } from "./job.ts";
import { jobEvent } from "./job-event.ts";
import { isFinal, type JobEvent } from "./job-status.ts";
import type { RequestOptions } from "./options.ts";
import { Passing } from "./retries.ts";
import type { ServerSentEvent } from "./sse.ts";
import type { Transport } from "./transport.ts";

const SILENCE_MS = KEEP_ALIVE_MS + 5_000;
/** So many connections in a row may tell nothing before events are only tried now and then. */
const MAX_DUMB = 2;
const AGAIN_AFTER = 12;
/** Connections that waits listen to now, of all clients. */
let streams = 0;

/** The decisions of one wait, without I/O. */
export class Watch {
  readonly #following: Following;
  readonly #deadline: Deadline;
  #roundMs = 0;
  #hasListened = false;
  /** Connections in a row that told nothing at all. */
  #dumb = 0;
  /** An event has said so. */
  #hasEnded = false;
  /** And the job itself does not, yet: no hurry any more. */
  #isLate = false;

  constructor(eventsPath: string, deadline: Deadline) {
    this.#following = new Following(eventsPath);
    this.#deadline = deadline;
  }

  /** A round, with the job as it is now. Throws WaitTimeoutError. */
  begin(job: Job): void {
    this.#deadline.check(job.status);
    this.#roundMs = performance.now();
    this.#hasListened = false;
  }

  /** Whether this round is to have a connection. */
  get listens(): boolean {
    return this.#isDue && streams < platform.maxStreams;
  }

  get #isDue(): boolean {
    // Where nothing is to be heard, now and then again.
    return this.#dumb < MAX_DUMB || this.#dumb % AGAIN_AFTER === 0;
  }

  /** A connection of this round begins. */
  listen(): Following {
    this.#hasListened = true;
    return this.#following;
  }

  /** What a connection gave, as a job's event. Throws ForgeHTTPError. */
  hear(event: ServerSentEvent | typeof LIFE): JobEvent | undefined {
    if (event === GONE) this.#hasEnded = true;
    if (event === GONE || event === LIFE) return undefined;
    const found = jobEvent(event);
    this.#hasEnded = isFinal(found.status);
    return found;
  }

  /** Whether it is time for the next round. */
  get isEnough(): boolean {
    return this.#hasEnded;
  }

  /** Of a round; for how long to pause before the next. */
  end(): number {
    // Without a connection to spare it is not known whether one would tell something.
    if (this.#hasListened || !this.#isDue) {
      this.#dumb = this.#following.hasHeard && this.#hasListened ? 0 : this.#dumb + 1;
    }
    if (this.#hasEnded && !this.#isLate) {
      this.#isLate = true;
      return 0;
    }
    return this.#deadline.pauseMs(performance.now() - this.#roundMs);
  }
}

/** One connection's events. Its failures end it: the next question tells more of them. */
export async function* listen(
  transport: Transport,
  watch: Watch,
  options: RequestOptions,
): AsyncGenerator<JobEvent, void, undefined> {
  const events = connect(transport, watch.listen(), options, SILENCE_MS);
  streams += 1;
  try {
    for await (const each of events) {
      const event = watch.hear(each);
      if (event) yield event;
      if (watch.isEnough) return;
    }
  } catch (error) {
    const isLost = error instanceof Passing || error instanceof ForgeHTTPError;
    if (!isLost && !(error instanceof ForgeAPIError)) throw error;
  } finally {
    streams -= 1;
  }
}
