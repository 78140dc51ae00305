import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { canonicalJson } from "../../core/canonical-json";
import { Conflict, ForgeError, InvalidRequest } from "../../core/errors";
import type { AnyCall } from "../../platform/http/route";
import { deleteOlder, isOlder } from "../../platform/postgres/clock";
import { isLockTimeout } from "../../platform/postgres/errors";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";

/**
 * A request waits at most 2 s for an earlier request with the same key, and then fails with
 * `request_in_flight`. If this process freezes during the transaction, Postgres ends the
 * transaction after 5 s. Otherwise the transaction could keep a worker's row locked
 * (start-new-job.ts).
 */
const BEGIN = "set local lock_timeout = '2s'; set local idle_in_transaction_session_timeout = '5s'";

const MAX_KEY_LENGTH = 255;

export interface Creation<T> {
  /**
   * The parsed request. If an earlier request with the same key had other content, this request is
   * refused.
   */
  content: unknown;
  /** Creates the resource within the caller's transaction and returns the response. */
  create(db: Queryable): Promise<T>;
  /**
   * The response to store and replay, without values that may be shown only once, such as a key's
   * text.
   */
  replay?(answer: NoInfer<T>): unknown;
}

/**
 * Handles a POST that creates a resource. If the request has an Idempotency-Key, the resource is
 * created once, no matter how often and to which process the request is sent. The key is stored in
 * the transaction that creates the resource.
 */
export async function createOnce<T>(
  ctx: Context,
  { request, reply, principal }: AnyCall,
  { content, create, replay = (answer) => answer }: Creation<T>,
): Promise<{ answer: T; isNew: boolean }> {
  const key = readKey(request);
  if (key === undefined) return { answer: await transaction(ctx.pool, create), isNew: true };
  const { userId } = principal;
  const fingerprint = fingerprintOf([request.routeOptions.config.route?.paths[0], content]);
  // If the database's clock was set forward, a used key could look expired, and the request would
  // run twice. To prevent this, `claimKey` does not count the time that the clock skipped. This
  // works only after ClockWatch has recorded that the clock was set. Until then,
  // `requireKnownClock` makes the transaction fail.
  return await ctx.clockWatch.transaction(
    async (db) => {
      const first = await claimKey(db, userId, key, fingerprint).catch(inFlight);
      if (first === undefined) {
        const answer = await create(db);
        await storeResponse(db, userId, key, replay(answer));
        return { answer, isNew: true };
      }
      if (first.fingerprint !== fingerprint) {
        const message = "this Idempotency-Key was used with another request";
        throw new ForgeError(422, "idempotency_key_reused", message, "Idempotency-Key");
      }
      reply.header("idempotency-replayed", "true");
      return { answer: first.response as T, isNew: false };
    },
    { begin: BEGIN, requireKnownClock: true },
  );
}

/** @throws 400 if the key is not valid. */
export const hasIdempotencyKey = (request: FastifyRequest): boolean =>
  readKey(request) !== undefined;

function readKey({ raw }: FastifyRequest): string | undefined {
  const [key, ...more] = raw.headersDistinct["idempotency-key"] ?? [];
  if (key === undefined) return undefined;
  if (more.length > 0 || key.length < 1 || key.length > MAX_KEY_LENGTH) {
    const message = `Idempotency-Key must be one text of 1 to ${MAX_KEY_LENGTH} characters`;
    throw new InvalidRequest(message, "Idempotency-Key");
  }
  return key;
}

const fingerprintOf = (content: unknown): string =>
  createHash("sha256").update(canonicalJson(content)).digest("hex");

function inFlight(error: unknown): never {
  if (!isLockTimeout(error)) throw error;
  throw new Conflict(
    "request_in_flight",
    "the first request with this Idempotency-Key is still in flight",
    "Idempotency-Key",
  );
}

/**
 * Claims an idempotency key, in the transaction that does the request's work. A concurrent claim of
 * the same key waits until that transaction ends.
 *
 * @returns undefined if this call claimed the key; otherwise the fingerprint and response of the
 *   earlier request that claimed it.
 */
export async function claimKey(
  db: Queryable,
  userId: string,
  key: string,
  fingerprint: string,
): Promise<{ fingerprint: string; response: unknown } | undefined> {
  const claimed = await execute(
    db,
    `insert into idempotency as i (user_id, key, fingerprint) values ($1, $2, $3)
     on conflict (user_id, key) do update
       set fingerprint = excluded.fingerprint, response = null, created_at = now()
       where ${isOlder("i.created_at", "interval '24 hours'")}`,
    [userId, key, fingerprint],
  );
  if (claimed === 1) return undefined;
  return await maybeOne(
    db,
    "select fingerprint, response from idempotency where user_id = $1 and key = $2",
    [userId, key],
  );
}

async function storeResponse(
  db: Queryable,
  userId: string,
  key: string,
  response: unknown,
): Promise<void> {
  await execute(db, "update idempotency set response = $3 where user_id = $1 and key = $2", [
    userId,
    key,
    JSON.stringify(response),
  ]);
}

/** Keys are kept for 25 hours, an hour longer than they are valid. */
const RETENTION = { table: "idempotency", time: "created_at", age: "interval '25 hours'" };

export const deleteOldIdempotencyKeys = (db: Queryable, limit: number): Promise<number> =>
  deleteOlder(db, RETENTION, limit);
