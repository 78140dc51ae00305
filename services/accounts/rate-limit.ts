import type { FastifyReply } from "fastify";
import { ForgeError } from "../../core/errors";
import { Shared } from "../../platform/concurrency/shared";
import type { Queryable } from "../../platform/postgres/pool";
import { type Lease, leaseTokens } from "./rate-buckets";

interface RateLimit {
  perMinute: number;
  /** Most requests at once, after a pause. */
  burst: number;
}

/** Tokens taken at once: one write to the database for so many requests. */
const LEASE = 50;
/** Tokens that a process has not spent by then are lost to the tenant. */
const LEASE_MS = 5_000;

interface Spending {
  tokens: number;
  /** What was left in the bucket itself when they were taken. */
  left: number;
  askedMs: number;
}

/**
 * A token bucket for each tenant, kept in Postgres so that it holds across processes, and spent in small leases
 * so that a request seldom has to ask.
 */
export class RateLimiter {
  private readonly spending = new Map<string, Spending>();
  private readonly asking = new Shared<Spending>();
  private readonly perSecond: number;
  private readonly lease: number;

  constructor(
    private readonly db: Queryable,
    private readonly limit: RateLimit,
    private readonly nowMs: () => number,
  ) {
    this.perSecond = limit.perMinute / 60;
    this.lease = Math.max(1, Math.min(LEASE, Math.floor(limit.burst / 20)));
  }

  /** Counts one request; the RateLimit headers tell how many are left. @throws 429 when none is. */
  async admit(userId: string, reply: FastifyReply): Promise<void> {
    let own = this.spending.get(userId);
    while (!own || this.isSpent(own)) own = await this.ask(userId);
    const admitted = own.tokens >= 1;
    if (admitted) own.tokens -= 1;
    const left = Math.floor(own.tokens + own.left);
    const fullInS = Math.ceil((this.limit.burst - left) / this.perSecond);
    reply.headers({
      "ratelimit-limit": this.limit.burst,
      "ratelimit-remaining": left,
      "ratelimit-reset": fullInS,
      "ratelimit-policy": `${this.limit.perMinute};w=60;burst=${this.limit.burst}`,
    });
    if (admitted) return;
    reply.header("retry-after", Math.max(1, Math.ceil(1 / this.perSecond)));
    throw new ForgeError(
      429,
      "rate_limited",
      `your keys may together make ${this.limit.perMinute} requests a minute, ${this.limit.burst} at once`,
    );
  }

  /** Worth another question: too old, or used up while the bucket may hold more. */
  private isSpent({ tokens, left, askedMs }: Spending): boolean {
    const ageMs = this.nowMs() - askedMs;
    if (tokens >= 1) return ageMs >= LEASE_MS;
    // An empty bucket has its next token after so long; until then there is nothing to ask for.
    return left >= 1 || ageMs >= 1000 / this.perSecond;
  }

  /** One question to the database for all that wait for its answer. */
  private async ask(userId: string): Promise<Spending> {
    return await this.asking.do(userId, async () => {
      const { burst } = this.limit;
      return this.keep(
        userId,
        await leaseTokens(this.db, userId, this.lease, burst, this.perSecond),
      );
    });
  }

  private keep(userId: string, { granted, tokens }: Lease): Spending {
    if (this.spending.size > 10_000) this.forgetOld();
    const spending = { tokens: granted, left: tokens, askedMs: this.nowMs() };
    this.spending.set(userId, spending);
    return spending;
  }

  private forgetOld(): void {
    for (const [userId, { askedMs }] of this.spending) {
      if (this.nowMs() - askedMs >= LEASE_MS) this.spending.delete(userId);
    }
  }
}
