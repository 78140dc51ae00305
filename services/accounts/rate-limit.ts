import type { FastifyReply } from "fastify";
import { ForgeError } from "../../core/errors";
import { SingleFlight } from "../../platform/concurrency/single-flight";
import type { Config } from "../../platform/config/config";
import type { Queryable } from "../../platform/postgres/pool";
import { leaseTokens } from "./rate-buckets";

/** Maximum number of tokens per lease. One database write then serves up to this many requests. */
const LEASE = 50;
/** A lease expires after this time. The tenant loses the tokens that are left. */
const LEASE_MS = 5_000;

interface LocalLease {
  tokens: number;
  /** Tokens that remained in the tenant's bucket when this lease was taken. */
  left: number;
  leasedMs: number;
}

/**
 * A token bucket per tenant. It is stored in Postgres, so the limit holds over all processes.
 * Processes spend it in small leases, so most requests need no database call.
 */
export class RateLimiter {
  private readonly leases = new Map<string, LocalLease>();
  private readonly leasing = new SingleFlight<LocalLease>();
  private readonly perSecond: number;
  private readonly leaseSize: number;

  constructor(
    private readonly db: Queryable,
    /**
     * `burst` is the size of the bucket: the maximum number of requests that a tenant can send at
     * once after a pause.
     */
    private readonly limit: Config["limits"]["rate"],
    private readonly nowMs: () => number,
  ) {
    this.perSecond = limit.perMinute / 60;
    this.leaseSize = Math.max(1, Math.min(LEASE, Math.floor(limit.burst / 20)));
  }

  /** Counts one request and sets the RateLimit headers. @throws 429 if no token is left. */
  async admit(userId: string, reply: FastifyReply): Promise<void> {
    let lease = this.leases.get(userId);
    while (!lease || this.isSpent(lease)) lease = await this.renew(userId);
    const admitted = lease.tokens >= 1;
    if (admitted) lease.tokens -= 1;
    const left = Math.floor(lease.tokens + lease.left);
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
      `rate limit exceeded: all your keys together may send ${this.limit.perMinute} requests per minute, at most ${this.limit.burst} at once`,
    );
  }

  /**
   * Whether to lease again: the lease has expired, or it is used up and the bucket may have tokens.
   */
  private isSpent({ tokens, left, leasedMs }: LocalLease): boolean {
    const ageMs = this.nowMs() - leasedMs;
    if (tokens >= 1) return ageMs >= LEASE_MS;
    // An empty bucket gets its next token after 1 / perSecond seconds. Until then there is nothing
    // to lease.
    return left >= 1 || ageMs >= 1000 / this.perSecond;
  }

  /** Leases tokens. Concurrent calls for a tenant share one statement. */
  private async renew(userId: string): Promise<LocalLease> {
    return await this.leasing.do(userId, async () => {
      const { db, leaseSize, perSecond } = this;
      const { burst } = this.limit;
      const { granted, tokens } = await leaseTokens(db, userId, leaseSize, burst, perSecond);
      if (this.leases.size > 10_000) this.deleteExpired();
      const lease = { tokens: granted, left: tokens, leasedMs: this.nowMs() };
      this.leases.set(userId, lease);
      return lease;
    });
  }

  private deleteExpired(): void {
    for (const [userId, { leasedMs }] of this.leases) {
      if (this.nowMs() - leasedMs >= LEASE_MS) this.leases.delete(userId);
    }
  }
}
