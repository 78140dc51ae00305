import { randomUUID } from "node:crypto";
import { Decimal } from "decimal.js";
import type { Stripe } from "stripe" with { "resolution-mode": "import" };
import type { StripeSettings } from "../../platform/config/billing";
import type {
  Delivery,
  DueLine,
  ExportedLine,
  NotDelivered,
  UsageExporter,
} from "./usage-exporter";

const MICRO_USD = 1_000_000;
/**
 * Timeout of one try. All tries of a request together must take much less time than the lease of a
 * line.
 */
const TIMEOUT_MS = 10_000;
const LIBRARY_RETRIES = 1;
/** Older lines are not sent: Stripe accepts events of the past 35 days. */
const OLDEST_S = 35 * 86_400;
/**
 * A line whose response was lost may be sent again within this time: Stripe detects duplicates for
 * at least 24 hours. Forge uses one hour less, as a margin for clock differences and slow requests.
 */
const KNOWN_FOR_S = 23 * 3600;
const MAX_REASON = 400;

/**
 * Reports each line as one event of a billing meter, in whole millionths of a dollar. The line's id
 * is the event's identifier. Stripe rejects a second event with the same identifier, so a line
 * whose response was lost can be sent again.
 */
export class StripeExporter implements UsageExporter {
  readonly name = "stripe";
  readonly needsCustomer = true;
  /** How many requests each running delivery has sent, by the delivery's idempotency key. */
  private readonly requests = new Map<string, number>();

  /**
   * Loads Stripe's library only if it is needed, because loading it takes half a second and much
   * memory.
   */
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

  /** Stripe accepts one event per customer at a time. */
  laneOf({ customer_id: customer, user_id: user }: ExportedLine): string {
    return customer ?? user;
  }

  async deliver(line: DueLine): Promise<Delivery> {
    if (line.in_doubt_s !== null && line.in_doubt_s > KNOWN_FOR_S) {
      const reason =
        "unconfirmed: sent more than a day ago without a response; check whether Stripe has it";
      return { accepted: false, reason, retry: "too_late", mayHaveArrived: true };
    }
    if (line.age_s > OLDEST_S) {
      const reason = "too_old: Stripe does not accept usage older than 35 days";
      return { accepted: false, reason, retry: "too_late", mayHaveArrived: false };
    }
    const key = randomUUID();
    this.requests.set(key, 0);
    try {
      return await this.send(line, key);
    } catch (error) {
      const judged = deliveryFromError(error, this.errors);
      // The library may have retried a request whose response it did not get.
      const isRepeated = this.requests.get(key) !== 1;
      if (judged.accepted) {
        return isRepeated || line.in_doubt_s !== null
          ? judged
          : { ...judged, warning: ALREADY_THERE_WARNING };
      }
      const mayHaveArrived = judged.mayHaveArrived || isRepeated;
      return { ...judged, reason: this.redact(judged.reason), mayHaveArrived };
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
      // A new key for each delivery: if Stripe knows the key, it repeats its earlier response, even
      // a failure.
      { idempotencyKey },
    );
    // The library treats any JSON without a field `error` as a success, even if a gateway sent it
    // with status 502.
    if (event.identifier === line.line_id) return { accepted: true };
    return unavailable("unavailable: the response is not from Stripe", true);
  }

  /** Removes the API key, which an error message may contain, and limits the length. */
  private redact(reason: string): string {
    return reason.replaceAll(this.settings.apiKey, "[hidden]").slice(0, MAX_REASON);
  }
}

/**
 * Warning for a line that Stripe already had, although the database knows of no earlier send. The
 * database may have been restored to a state before that send. The amount sent may have differed.
 */
const ALREADY_THERE_WARNING =
  "already_there: Stripe had this line before it was sent; compare the amounts in Stripe and here";

/** Error codes of connections that failed before anything was sent. */
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

const unavailable = (reason: string, mayHaveArrived: boolean): NotDelivered => ({
  accepted: false,
  reason,
  retry: "soon",
  mayHaveArrived,
});

/**
 * Decides from an error whether and when the delivery is retried. If Stripe already has the line,
 * it counts as accepted.
 */
function deliveryFromError(error: unknown, errors: typeof Stripe.errors): Delivery {
  if (error instanceof errors.StripeConnectionError) {
    const { detail } = error;
    const code = detail instanceof Error && "code" in detail ? String(detail.code) : "no code";
    return unavailable(`unavailable: ${error.message} (${code})`, !NOT_CONNECTED.includes(code));
  }
  if (!(error instanceof errors.StripeError))
    return unavailable(`unavailable: ${String(error)}`, true);
  const { statusCode: status, message } = error;
  if (error instanceof errors.StripeRateLimitError || status === 409) {
    return unavailable(`unavailable: ${status} ${message}`, false);
  }
  // A wrong key fails every line, so the lines are retried soon, until the key is corrected.
  if (status === 401 || status === 403)
    return unavailable(`key_refused: ${status} ${message}`, false);
  if (status !== undefined && status >= 400 && status < 500) {
    if (/already exists with identifier/i.test(message)) return { accepted: true };
    const reason = `refused: ${status} ${message}`;
    return { accepted: false, reason, retry: "tomorrow", mayHaveArrived: false };
  }
  return unavailable(`unavailable: ${status ?? "no status"} ${message}`, true);
}
