import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface MeterEvent {
  event_name: string;
  identifier: string;
  timestamp: number;
  customer: string;
  value: string;
}

/**
 * What goes wrong with one request. `cut-before` and `cut-after`: the connection ends before or
 * after Stripe has accepted the event. A number: Stripe responds with this status. `gateway` and
 * `gateway-json`: a gateway in front of Stripe responds with an error.
 */
export type Fault = "cut-before" | "cut-after" | 429 | 500 | "gateway" | "gateway-json";

const FUTURE_S = 5 * 60;
const PAST_S = 35 * 86_400;

/** Accepts meter events as Stripe's documentation describes. `faults` makes requests fail. */
export class StripeServer {
  readonly events: MeterEvent[] = [];
  readonly headers: IncomingMessage["headers"][] = [];
  /** Each of the next requests takes one fault from the front of this list. */
  readonly faults: Fault[] = [];
  /** Identifiers that were refused as duplicates. */
  readonly repeated: string[] = [];
  readonly unknownCustomers = new Set<string>();
  /** While this promise is set and pending, accepted events get no response. */
  answering: Promise<void> | undefined;
  private readonly busy = new Set<string>();
  /** Responses by idempotency key, for the lifetime of the server. */
  private readonly answers = new Map<string, { status: number; body: object }>();

  private constructor(
    private readonly server: Server,
    public key: string,
  ) {}

  /** The environment of a forge-server that exports to this server. */
  settings(intervalS: number): Record<string, string> {
    return {
      FORGE_BILLING_EXPORT: "stripe",
      FORGE_BILLING_EXPORT_INTERVAL_S: String(intervalS),
      FORGE_STRIPE_API_KEY: this.key,
      FORGE_STRIPE_API_URL: this.url,
    };
  }

  static async start(key: string): Promise<StripeServer> {
    const server = createServer();
    const stripe = new StripeServer(server, key);
    server.on("request", (request, response) => void stripe.answer(request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return stripe;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** How many times this identifier was accepted. */
  taken(identifier: string): number {
    return this.events.filter((event) => event.identifier === identifier).length;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fields = new URLSearchParams(await text(request).catch(() => ""));
    this.headers.push(request.headers);
    const fault = this.faults.shift();
    if (fault === "cut-before") return void request.socket.destroy();
    if (fault === 429) {
      response.setHeader("Stripe-Should-Retry", "false");
      return send(response, 429, failure("rate_limit", "Too many requests"));
    }
    if (fault === 500) return send(response, 500, failure("api_error", "An unknown error"));
    if (fault === "gateway-json") return send(response, 502, { message: "no upstream" });
    if (fault === "gateway") {
      response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
      return;
    }
    const customer = fields.get("payload[stripe_customer_id]") ?? "";
    if (this.busy.has(customer)) {
      return send(response, 429, failure("rate_limit", "One call of a customer at a time"));
    }
    this.busy.add(customer);
    try {
      const { status, body } = this.once(request, fields);
      if (fault === "cut-after") return void request.socket.destroy();
      if (status === 200) await this.answering;
      send(response, status, body);
    } finally {
      this.busy.delete(customer);
    }
  }

  /** A repeated idempotency key gets the first response again. */
  private once(
    request: IncomingMessage,
    fields: URLSearchParams,
  ): { status: number; body: object } {
    const key = String(request.headers["idempotency-key"]);
    const before = this.answers.get(key);
    if (before) return before;
    const answer = this.take(request, fields);
    this.answers.set(key, answer);
    return answer;
  }

  private take(
    request: IncomingMessage,
    fields: URLSearchParams,
  ): { status: number; body: object } {
    if (request.headers.authorization !== `Bearer ${this.key}`) {
      // Stripe masks most of the key in this message. This server returns the whole key, as a proxy
      // between Forge and Stripe might, so that tests can check that Forge hides it.
      const message = `Invalid API Key provided: ${request.headers.authorization}`;
      return { status: 401, body: failure("invalid_request_error", message) };
    }
    const refuse = (message: string, status = 400) => ({
      status,
      body: failure("invalid_request_error", message),
    });
    if (request.method !== "POST" || request.url !== "/v1/billing/meter_events") {
      return refuse("Unrecognized request URL", 404);
    }
    const event: MeterEvent = {
      event_name: fields.get("event_name") ?? "",
      identifier: fields.get("identifier") ?? "",
      timestamp: Number(fields.get("timestamp")),
      customer: fields.get("payload[stripe_customer_id]") ?? "",
      value: fields.get("payload[value]") ?? "",
    };
    const now = Date.now() / 1000;
    if (event.event_name !== "forge_usage") return refuse("No active meter found for event name");
    if (event.identifier === "" || event.identifier.length > 100) return refuse("Bad identifier");
    if (!/^\d+$/.test(event.value)) return refuse("The value must be a whole number");
    if (event.timestamp > now + FUTURE_S || event.timestamp < now - PAST_S) {
      return refuse("The timestamp must be within the past 35 days");
    }
    if (event.customer === "" || this.unknownCustomers.has(event.customer)) {
      return refuse(`No such customer: '${event.customer}'`);
    }
    if (this.taken(event.identifier) > 0) {
      this.repeated.push(event.identifier);
      return refuse(`An event already exists with identifier ${event.identifier}.`);
    }
    this.events.push(event);
    const { event_name, identifier, timestamp, customer, value } = event;
    const payload = { stripe_customer_id: customer, value };
    const body = {
      object: "billing.meter_event",
      created: Math.floor(now),
      event_name,
      identifier,
    };
    return { status: 200, body: { ...body, livemode: false, payload, timestamp } };
  }
}

const failure = (type: string, message: string): object => ({ error: { type, message } });

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
