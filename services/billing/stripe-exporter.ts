import { randomUUID } from "node:crypto";
import { Decimal } from "decimal.js";
import type { Stripe } from "stripe" with { "resolution-mode": "import" };
import type { StripeSettings } from "../../platform/config/billing";
import type { Delivery, DueLine, ExportedLine, NotTaken, UsageExporter } from "./usage-exporter";

const MICRO_USD = 1_000_000;
/** Both together stay far below the lease of a line. */
const TIMEOUT_MS = 10_000;
const LIBRARY_RETRIES = 1;
/** Stripe takes events of the past 35 days. */
const OLDEST_S = 35 * 86_400;
/** It knows a repeated event for 24 hours at least; an hour of them is for clocks and slow requests. */
const KNOWN_FOR_S = 23 * 3600;
const MAX_REASON = 400;

/**
 * Reports each line as one event of a billing meter, in whole millionths of a dollar. The line's id is the
 * event's identifier: Stripe refuses another event of the same one, so that a line whose answer got lost is
 * sent again without being billed again.
 */
export class StripeExporter implements UsageExporter {
  readonly name = "stripe";
  readonly needsCustomer = true;
  /** How many requests each delivery under way has sent, by its idempotency key. */
  private readonly requests = new Map<string, number>();

  /** Stripe's library takes half a second and much memory to load: only those who use it do. */
  static async open(settings: StripeSettings): Promise<StripeExporter> {
    const { default: Library } = await import("stripe");
    const { protocol, hostname, port } = new URL(settings.apiUrl);
    const stripe = new Library(settings.apiKey, {
      protocol: protocol === "http:" ? "http" : "https",
      host: hostname,
      port: port || (protocol === "http:" ? 80 : 443),
      timeout: TIMEOUT_MS,
      maxNetworkRetries: LIBRARY_RETRIES,
      telemetry: false,
    });
    return new StripeExporter(settings, stripe, Library.errors);
  }

  private constructor(
    private readonly settings: StripeSettings,
    private readonly stripe: Stripe,
    private readonly errors: typeof Stripe.errors,
  ) {
    stripe.on("request", ({ idempotency_key: key }: Stripe.RequestEvent) => {
      const sent = key === undefined ? undefined : this.requests.get(key);
      if (key !== undefined && sent !== undefined) this.requests.set(key, sent + 1);
    });
  }

  /** Stripe takes one event of a customer at a time. */
  laneOf({ customer_id: customer, user_id: user }: ExportedLine): string {
    return customer ?? user;
  }

  async deliver(line: DueLine): Promise<Delivery> {
    if (line.in_doubt_s !== null && line.in_doubt_s > KNOWN_FOR_S) {
      const reason =
        "unconfirmed: sent more than a day ago without an answer: see whether Stripe has it";
      return { taken: false, reason, again: "too_late", mayHaveArrived: true };
    }
    if (line.age_s > OLDEST_S) {
      const reason = "too_old: Stripe takes no usage of more than 35 days ago";
      return { taken: false, reason, again: "too_late", mayHaveArrived: false };
    }
    const key = randomUUID();
    this.requests.set(key, 0);
    try {
      return await this.send(line, key);
    } catch (error) {
      const judged = judge(error, this.errors);
      if (judged.taken) return judged;
      // The library may have repeated a request whose answer it did not get.
      const mayHaveArrived = judged.mayHaveArrived || this.requests.get(key) !== 1;
      return { ...judged, reason: this.presentable(judged.reason), mayHaveArrived };
    } finally {
      this.requests.delete(key);
    }
  }

  private async send(line: DueLine, idempotencyKey: string): Promise<Delivery> {
    const event = await this.stripe.billing.meterEvents.create(
      {
        event_name: this.settings.meterEvent,
        identifier: line.line_id,
        timestamp: Math.floor(line.created_at.getTime() / 1000),
        payload: {
          stripe_customer_id: line.customer_id ?? "",
          value: new Decimal(line.cost_usd).times(MICRO_USD).toFixed(0),
        },
      },
      // Another with each delivery: what Stripe remembers by it are failures, too.
      { idempotencyKey },
    );
    // To the library any JSON without `error` is success, a gateway's "502" among them.
    if (event.identifier === line.line_id) return { taken: true };
    return away("unavailable: the answer is not Stripe's", true);
  }

  /** What is stored and logged: without the key, whoever repeats it to us, and short. */
  private presentable(reason: string): string {
    return reason.replaceAll(this.settings.apiKey, "[hidden]").slice(0, MAX_REASON);
  }
}

/** Nothing was sent when a connection fails like this. */
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

const away = (reason: string, mayHaveArrived: boolean): NotTaken => ({
  taken: false,
  reason,
  again: "soon",
  mayHaveArrived,
});

/** The one place that tells which of Stripe's errors are worth another try, and when. */
function judge(error: unknown, errors: typeof Stripe.errors): Delivery {
  if (error instanceof errors.StripeConnectionError) {
    const { detail } = error;
    const code = detail instanceof Error && "code" in detail ? String(detail.code) : "no code";
    return away(`unavailable: ${error.message} (${code})`, !NOT_CONNECTED.includes(code));
  }
  if (!(error instanceof errors.StripeError)) return away(`unavailable: ${String(error)}`, true);
  const { statusCode: status, message } = error;
  if (error instanceof errors.StripeRateLimitError || status === 409) {
    return away(`unavailable: ${status} ${message}`, false);
  }
  // A wrong key is wrong for every line, and right for every line once it is corrected.
  if (status === 401 || status === 403) return away(`key_refused: ${status} ${message}`, false);
  if (status !== undefined && status >= 400 && status < 500) {
    if (/already exists with identifier/i.test(message)) return { taken: true };
    const reason = `refused: ${status} ${message}`;
    return { taken: false, reason, again: "tomorrow", mayHaveArrived: false };
  }
  return away(`unavailable: ${status ?? "no status"} ${message}`, true);
}
