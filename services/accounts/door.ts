import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../core/accounts/principal";
import { ForgeError } from "../../core/errors";
import { FairQueue } from "../../platform/concurrency/fair-queue";
import { Pace } from "../../platform/concurrency/pace";
import { parseJsonBody } from "../../platform/http/body";
import { busyShare, FairShare } from "../../platform/http/fair-share";
import { routeOf } from "../../platform/http/routing";
import { addressGroup } from "../../platform/net/address-group";
import type { Context } from "../context";
import { authenticate } from "./authenticate";
import { KeyLookup } from "./key-lookup";
import { requireBelow } from "./quota-exceeded";
import { RateLimiter } from "./rate-limit";

/** Refusals that are answered at once, and how many may wait: of one tenant, and of an address without a key. */
const REFUSALS = { perSecond: 20, burst: 20, maxWaitMs: 1_000 };
const OF_A_TENANT = { ...REFUSALS, maxWaiting: 1_000 };
const OF_STRANGERS = { ...REFUSALS, maxWaiting: 100 };

const SHARES = { busyFrom: 0.5, maxWaitMs: 5_000 };
/** Work is counted in requests of the least kind: so many characters of an answer, or bytes of a body, are one. */
const CHARACTERS_OF_A_REQUEST = 8_192;
const BYTES_OF_A_REQUEST = 20_000;
/** Of what is passed on or stored, and not parsed. */
const STREAMED_BYTES_OF_A_REQUEST = 400_000;
/** In bytes, from which on a body waits for its tenant's share, whatever it is for. */
const LARGE_BODY = 16_384;
/** Of one tenant that may wait to be read, each in memory. */
const MAX_LARGE_BODIES = 100;

/** Refusals of what may be guessed, by somebody without a key. */
const GUESSED = ["invalid_api_key", "invalid_ticket"];

/** What every request passes before its route looks at it: its key, its tenant's limits and its tenant's share. */
export class Door {
  private readonly keys: KeyLookup;
  private readonly limiter: RateLimiter;
  private readonly tenants: Pace;
  private readonly strangers: Pace;
  private readonly shares: FairShare;
  private readonly largeBodies = new FairQueue();

  constructor(private readonly ctx: Context) {
    this.keys = new KeyLookup(ctx.pool, ctx.signals, ctx.clock.nowMs);
    this.limiter = new RateLimiter(ctx.pool, ctx.config.limits.rate, ctx.clock.nowMs);
    this.tenants = new Pace(OF_A_TENANT, ctx.clock.nowMs);
    this.strangers = new Pace(OF_STRANGERS, ctx.clock.nowMs);
    this.shares = new FairShare(SHARES, ctx.clock.nowMs, busyShare());
  }

  /** Whose the request is. @throws 403 without a valid key. */
  async principalOf(request: FastifyRequest): Promise<Principal> {
    const canWait = routeOf(request)?.patient;
    return await authenticate({ db: this.ctx.pool, keys: this.keys }, request.raw, canWait);
  }

  /** Counts a request whose principal is known; resolves when it may go on. @throws 429 when it may not. */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { userId, scope, sharesWorkers } = request.principal;
    const { yields, unlimited, operationId = "", pace, stream } = routeOf(request) ?? {};
    const isLimited = scope === "user" && !unlimited;
    const length = Number(request.headers["content-length"] ?? 0);
    if (stream) this.spend(request.principal, length / STREAMED_BYTES_OF_A_REQUEST);
    if (isLimited) await this.limiter.admit(userId, reply);
    // Workers that serve every tenant don't wait for the share of the one whose they are.
    const mayWait = isLimited || (!sharesWorkers && (yields || isLarge(request)));
    if (mayWait) await this.enter(request.principal, yields ? operationId : "");
    else this.spend(request.principal, 1);
    if (pace && !(await pace.wait(userId))) {
      throw tooMany("such requests");
    }
  }

  /**
   * Reads a body of JSON. Large ones are read one at a time, tenants taking turns, and take half of the process's
   * time at most: what else is due comes in between.
   */
  async read({ principal }: FastifyRequest, bytes: Buffer): Promise<unknown> {
    this.spend(principal, bytes.length / BYTES_OF_A_REQUEST);
    const parse = (): unknown => parseJsonBody(bytes, this.ctx.config.http.maxJsonDepth);
    if (bytes.length <= LARGE_BODY) return parse();
    if (this.largeBodies.waitingOf(principal.userId) >= MAX_LARGE_BODIES) throw tooMany("bodies");
    return await new Promise((resolve, reject) => {
      void this.largeBodies.take(principal.userId, async () => {
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

  noteAnswer({ principal }: FastifyRequest, characters: number): void {
    // Set late: not for open paths, and not for who has no key.
    if (principal) this.spend(principal, characters / CHARACTERS_OF_A_REQUEST);
  }

  /**
   * Holds a refusal back whose client would else have this process do little else: for asking too often, or for a
   * key that is none. False: too many of that client's wait, so that its connection should be cut.
   */
  async mayAnswer(error: Error, { principal, ip }: FastifyRequest): Promise<boolean> {
    if (!(error instanceof ForgeError)) return true;
    if (error.status !== 429 && !GUESSED.includes(error.code)) return true;
    if (principal) return await this.tenants.wait(principal.userId);
    this.shares.spendOnStranger(1);
    return await this.strangers.wait(addressGroup(ip));
  }

  /** An admin's, and shared workers', is no tenant's: whoever scrapes metrics makes no tenant wait. */
  private spend({ userId, sharesWorkers }: Principal, cost: number): void {
    if (!sharesWorkers) this.shares.spend(userId, cost);
  }

  private async enter({ userId, scope }: Principal, line: string): Promise<void> {
    const { caps } = this.ctx.config.limits;
    const cap = scope === "user" ? caps.waiting_requests : caps.waiting_polls;
    const { limit } = cap;
    const maxWaiting = limit ?? Number.POSITIVE_INFINITY;
    if (await this.shares.enter(userId, line, maxWaiting)) return;
    requireBelow(cap, maxWaiting);
  }
}

const tooMany = (what: string): ForgeError =>
  new ForgeError(429, "rate_limited", `too many ${what} of yours wait already`);

/** True of a body whose length is not known, too. */
const isLarge = ({ headers }: FastifyRequest): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > LARGE_BODY;
