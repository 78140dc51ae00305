// Waits for a job's end: by events if they arrive, else by polling.
//
// Each round polls the job once, then listens to one event connection. The round ends when an event
// says that the job has ended, when the connection ends, or at the deadline. A connection that
// delivers nothing (for example behind a buffering proxy) only delays the next poll.
import { platform } from "#platform";
import type { Deadline } from "./deadline.ts";
import { ForgeAPIError, ForgeHTTPError } from "./errors.ts";
import { ALIVE, connect, GONE, KEEP_ALIVE_MS, StreamState } from "./following.ts";
import type { Job } from "./job.ts";
import { jobEvent } from "./job-event.ts";
import { isFinal, type JobEvent } from "./job-status.ts";
import type { RequestOptions } from "./options.ts";
import { TransientFailure } from "./retry-policy.ts";
import type { ServerSentEvent } from "./sse.ts";
import type { Transport } from "./transport.ts";

const SILENCE_MS = KEEP_ALIVE_MS + 5_000;
/** After this number of consecutive rounds without data, most rounds only poll the job. */
const MAX_SILENT = 2;
/** After MAX_SILENT rounds without data, only every 12th round opens a connection. */
const RETRY_EVERY = 12;
/** Number of open event connections of all waits and clients. */
let streams = 0;

/** The logic of one wait, without I/O. */
export class WaitState {
  readonly #following: StreamState;
  readonly #deadline: Deadline;
  #roundMs = 0;
  #hasListened = false;
  /** Number of consecutive rounds in which no event connection delivered anything. */
  #silentRounds = 0;
  /** Whether an event said that the job has ended. */
  hasEnded = false;
  /**
   * Whether an event about the job's end has already caused a poll without a pause. If this poll
   * did not show the end, all later polls wait for the poll interval.
   */
  #hasPolledAtEnd = false;

  constructor(eventsPath: string, deadline: Deadline) {
    this.#following = new StreamState(eventsPath);
    this.#deadline = deadline;
  }

  /**
   * Begins a round. Call it after each poll, before you open the event connection.
   *
   * `job`: the result of the poll. Throws WaitTimeoutError after the deadline.
   */
  begin(job: Job): void {
    this.#deadline.check(job.status);
    this.#roundMs = performance.now();
    this.#hasListened = false;
  }

  /** Whether this round uses an event connection. */
  get listens(): boolean {
    return this.#isDue && streams < platform.maxStreams;
  }

  get #isDue(): boolean {
    return this.#silentRounds < MAX_SILENT || this.#silentRounds % RETRY_EVERY === 0;
  }

  /** Records that this round opens an event connection. Returns the stream's state. */
  listen(): StreamState {
    this.#hasListened = true;
    return this.#following;
  }

  /**
   * Returns the received job event, or undefined for ALIVE and GONE. Throws ForgeHTTPError if the
   * event's data is not a JSON object.
   */
  receive(event: ServerSentEvent | typeof ALIVE): JobEvent | undefined {
    if (event === GONE) this.hasEnded = true;
    if (event === GONE || event === ALIVE) return undefined;
    const found = jobEvent(event);
    this.hasEnded = isFinal(found.status);
    return found;
  }

  /** Ends a round. Returns how long to pause before the next one. */
  end(): number {
    // Don't count a round that was due to open a connection but found `maxStreams` connections
    // open: such a round does not show whether events arrive.
    if (this.#hasListened || !this.#isDue) {
      this.#silentRounds =
        this.#following.hasReceived && this.#hasListened ? 0 : this.#silentRounds + 1;
    }
    if (this.hasEnded && !this.#hasPolledAtEnd) {
      this.#hasPolledAtEnd = true;
      return 0;
    }
    return this.#deadline.pauseMs(performance.now() - this.#roundMs);
  }
}

/** Yields one connection's events. Ends without an error if the connection fails. */
export async function* listen(
  transport: Transport,
  watch: WaitState,
  options: RequestOptions,
): AsyncGenerator<JobEvent, void, undefined> {
  const events = connect(transport, watch.listen(), options, SILENCE_MS);
  streams += 1;
  try {
    for await (const each of events) {
      const event = watch.receive(each);
      if (event) yield event;
      if (watch.hasEnded) return;
    }
  } catch (error) {
    const isLost = error instanceof TransientFailure || error instanceof ForgeHTTPError;
    if (!isLost && !(error instanceof ForgeAPIError)) throw error;
  } finally {
    streams -= 1;
  }
}
