import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../core/accounts/permissions";
import { ForgeError } from "../../core/errors";
import { FairQueue } from "../../platform/concurrency/fair-queue";
import { Throttle } from "../../platform/concurrency/throttle";
import { parseJsonBody } from "../../platform/http/body";
import { busyShare, FairShare } from "../../platform/http/fair-share";
import { routeOf } from "../../platform/http/routing";
import { addressGroup } from "../../platform/net/address-group";
import type { Context } from "../context";
import { authenticate } from "./authenticate";
import { KeyCache } from "./key-cache";
import { requireBelow } from "./quota-exceeded";
import { RateLimiter } from "./rate-limit";

/**
 * Limits the rate of error responses to clients that exceed a limit or guess secrets. The limit
 * applies per tenant, or per address group for requests without a valid key. Responses above this
 * rate are delayed. If too many responses wait, the connection is closed.
 */
const REFUSALS = { perSecond: 20, burst: 20, maxWaitMs: 2_000 };
const TENANT_REFUSALS = { ...REFUSALS, maxWaiting: 1_000 };
const ANONYMOUS_REFUSALS = { ...REFUSALS, maxWaiting: 100 };

/**
 * `busyFrom`: the fraction of time (0 to 1) that this process must be busy before requests wait for
 * their tenant's fair share. `maxWaitMs`: how long a request waits at most. It must be below the
 * agent's shortest HTTP time-out, which is 10 s (control_plane.py).
 */
const SHARES = { busyFrom: 0.5, maxWaitMs: 8_000 };
/**
 * A tenant's use of this process is measured in units. A small request costs one unit. A response
 * costs one more unit per CHARACTERS_OF_A_REQUEST characters, and a parsed body costs one more unit
 * per BYTES_OF_A_REQUEST bytes.
 */
const CHARACTERS_OF_A_REQUEST = 8_192;
const BYTES_OF_A_REQUEST = 20_000;
/** Bodies that are forwarded or stored without parsing cost less: one unit per this many bytes. */
const STREAMED_BYTES_OF_A_REQUEST = 400_000;
/**
 * A body with more bytes than this is large. A request with a large body waits for its tenant's
 * fair share on every route, even on routes where small requests don't wait. Admins and shared
 * workers never wait.
 */
const LARGE_BODY = 16_384;
/** How many large bodies of a tenant may wait in memory to be parsed. */
const MAX_LARGE_BODIES = 100;

/**
 * Codes of the errors that a client causes when it guesses secrets. The responses with these errors
 * are delayed.
 */
const GUESSING_ERRORS = ["invalid_api_key", "invalid_ticket"];

/**
 * Runs before every route handler: checks the key, the tenant's limits and the tenant's fair share.
 */
export class AdmissionControl {
  private readonly keys: KeyCache;
  private readonly limiter: RateLimiter;
  private readonly tenantRefusals: Throttle;
  private readonly anonymousRefusals: Throttle;
  private readonly shares: FairShare;
  private readonly largeBodies = new FairQueue();

  constructor(private readonly ctx: Context) {
    this.keys = new KeyCache(ctx.pool, ctx.signals, ctx.clock.nowMs);
    this.limiter = new RateLimiter(ctx.pool, ctx.config.limits.rate, ctx.clock.nowMs);
    this.tenantRefusals = new Throttle(TENANT_REFUSALS, ctx.clock.nowMs);
    this.anonymousRefusals = new Throttle(ANONYMOUS_REFUSALS, ctx.clock.nowMs);
    this.shares = new FairShare(SHARES, ctx.clock.nowMs, busyShare());
  }

  /** Authenticates the request. @throws 403 without a valid key. */
  async principalOf(request: FastifyRequest): Promise<Principal> {
    const canWait = routeOf(request)?.batchedKeyLookup;
    return await authenticate({ db: this.ctx.pool, keys: this.keys }, request.raw, canWait);
  }

  /**
   * Counts an authenticated request and resolves when it may continue. @throws 429 if it is
   * refused.
   */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { userId, scope, sharesWorkers } = request.principal;
    const {
      fairShare,
      skipsRateLimit,
      operationId = "",
      throttle,
      stream,
    } = routeOf(request) ?? {};
    const isLimited = scope === "user" && !skipsRateLimit;
    const length = Number(request.headers["content-length"] ?? 0);
    if (stream) this.spend(request.principal, length / STREAMED_BYTES_OF_A_REQUEST);
    if (isLimited) await this.limiter.admit(userId, reply);
    // Admins and shared workers may act for any tenant, so they never wait for the share of the
    // tenant that owns their key.
    const mayWait = isLimited || (!sharesWorkers && (fairShare || isLarge(request)));
    if (mayWait) await this.enter(request.principal, fairShare ? operationId : "");
    else this.spend(request.principal, 1);
    if (throttle && !(await throttle.wait(userId))) throw tooMany("such requests");
  }

  /**
   * Parses a JSON body. Large bodies are parsed one at a time, round robin over tenants. They take
   * at most half of the process's time, so that other work can run in between.
   */
  async read({ principal }: FastifyRequest, bytes: Buffer): Promise<unknown> {
    this.spend(principal, bytes.length / BYTES_OF_A_REQUEST);
    const parse = (): unknown => parseJsonBody(bytes, this.ctx.config.http.maxJsonDepth);
    if (bytes.length <= LARGE_BODY) return parse();
    if (this.largeBodies.waitingOf(principal.userId) >= MAX_LARGE_BODIES) throw tooMany("bodies");
    return await new Promise((resolve, reject) => {
      void this.largeBodies.run(principal.userId, async () => {
        const began = performance.now();
        try {
          resolve(parse());
        } catch (error) {
          reject(error);
        }
        await sleep(performance.now() - began);
      });
    });
  }

  /** Charges the length of a response to the caller's tenant. */
  chargeResponse({ principal }: FastifyRequest, characters: number): void {
    // `principal` is undefined for routes that need no key and for requests without a valid key.
    if (principal) this.spend(principal, characters / CHARACTERS_OF_A_REQUEST);
  }

  /**
   * Delays responses to clients that exceed a limit (429) or send invalid secrets, so that they
   * can't keep this process busy. Returns false if too many delayed responses already wait for the
   * same tenant or address group. The caller should then close the client's connection.
   */
  async mayAnswer(error: Error, { principal, ip }: FastifyRequest): Promise<boolean> {
    if (!(error instanceof ForgeError)) return true;
    if (error.status !== 429 && !GUESSING_ERRORS.includes(error.code)) return true;
    if (principal) return await this.tenantRefusals.wait(principal.userId);
    this.shares.recordUnauthenticatedWork(1);
    return await this.anonymousRefusals.wait(addressGroup(ip));
  }

  /**
   * Charges `cost` to the caller's tenant. A small request costs 1. Requests of admins and shared
   * workers are not charged: for example, scraping metrics must not make a tenant's requests wait.
   */
  private spend({ userId, sharesWorkers }: Principal, cost: number): void {
    if (!sharesWorkers) this.shares.recordWork(userId, cost);
  }

  private async enter({ userId, scope }: Principal, line: string): Promise<void> {
    const { caps } = this.ctx.config.limits;
    const cap = scope === "user" ? caps.waiting_requests : caps.waiting_polls;
    const maxWaiting = cap.limit ?? Number.POSITIVE_INFINITY;
    if (await this.shares.enter(userId, line, maxWaiting)) return;
    requireBelow(cap, maxWaiting);
  }
}

const tooMany = (what: string): ForgeError =>
  new ForgeError(429, "rate_limited", `too many ${what} of your tenant are waiting already`);

/** Whether the request has a large body, or a body of unknown length. */
const isLarge = ({ headers }: FastifyRequest): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > LARGE_BODY;
