import type { Prices, RateCard } from "../../core/billing/rate-card";
import { listPage, type Page, Where } from "../../platform/postgres/pages";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface RateCardRow {
  name: string;
  version: number;
  effective_from: Date;
  prices: Prices;
  created_by: string;
  created_at: Date;
}

/**
 * SQL: the rate card in force for a tenant at time `at`, in the form stored with jobs. If several
 * versions of the card have taken effect, the highest version is in force, even if a lower version
 * took effect later.
 */
const CARD_AT = (userId: string, at: string): string => `
  select jsonb_build_object('name', c.name, 'version', c.version) || c.prices as card
  from rate_cards c
  where c.effective_from <= ${at} and c.name = coalesce((
    select t.rate_card from tenant_rate_cards t where t.user_id = ${userId} and t.effective_from <= ${at}
    order by t.effective_from desc limit 1), 'default')
  order by c.version desc limit 1`;

/** SQL: the rate card that applies to jobs submitted now. */
export const CARD_NOW = (userId: string): string => CARD_AT(userId, "now()");

/**
 * SQL: the rate card in force for a tenant just before a month's end. A card that takes effect with
 * the next month does not count. If the month ended before the first version of the default card
 * took effect, uses the time at which that version took effect. The prices don't matter then,
 * because nothing was used in such a month.
 */
export const CARD_AT_END = (userId: string, end: string): string =>
  CARD_AT(
    userId,
    `greatest(${end} - interval '1 microsecond', (select min(effective_from) from rate_cards where name = 'default'))`,
  );

/** The rate card in force for a tenant when a month ended. @param end the month's end, ISO 8601. */
export async function findRateCardAtEnd(
  db: Queryable,
  userId: string,
  end: string,
): Promise<RateCard> {
  const row = await maybeOne<{ card: RateCard }>(db, CARD_AT_END("$1", "$2::timestamptz"), [
    userId,
    end,
  ]);
  if (!row) throw new Error(`no rate card was in force for ${userId}`);
  return row.card;
}

/** The rate card that a job submitted now is billed by. */
export async function findRateCard(db: Queryable, userId: string): Promise<RateCard> {
  const row = await maybeOne<{ card: RateCard }>(db, CARD_NOW("$1"), [userId]);
  if (!row) throw new Error(`no rate card is in force for ${userId}`);
  return row.card;
}

/** The latest version of a card. */
export async function findCardVersion(db: Queryable, name: string) {
  return await maybeOne<RateCardRow>(
    db,
    "select * from rate_cards where name = $1 order by version desc limit 1",
    [name],
  );
}

/** When the first version of a card takes effect. */
export async function findFirstDate(db: Queryable, name: string): Promise<Date | undefined> {
  const row = await maybeOne<{ first: Date | null }>(
    db,
    "select min(effective_from) as first from rate_cards where name = $1",
    [name],
  );
  return row?.first ?? undefined;
}

/**
 * Inserts the next version of a card; undefined if another transaction inserted it at the same
 * time.
 */
export async function insertCardVersion(
  db: Queryable,
  name: string,
  prices: Prices,
  effectiveFrom: string | null,
  createdBy: string,
) {
  return await maybeOne<RateCardRow>(
    db,
    `insert into rate_cards (name, version, effective_from, prices, created_by)
     select $1, coalesce(max(version), 0) + 1, coalesce($3::timestamptz, now()), $2, $4
     from rate_cards where name = $1
     on conflict do nothing returning *`,
    [name, prices, effectiveFrom, createdBy],
  );
}

/** All versions of all cards, newest first. */
export async function listRateCards(db: Queryable, page: Page) {
  return await listPage<RateCardRow>(db, {
    select: "*, name || ':' || version as card_id",
    from: "rate_cards",
    order: ["created_at", "name || ':' || version"],
    where: new Where(),
    page,
  });
}

/**
 * Assigns a card to a tenant from the given time on (null: from now on). If the tenant already has
 * an assignment with exactly this time, replaces it.
 */
export async function assignRateCard(
  db: Queryable,
  userId: string,
  name: string,
  effectiveFrom: string | null,
  createdBy: string,
): Promise<{ effective_from: Date }> {
  const row = await maybeOne<{ effective_from: Date }>(
    db,
    `insert into tenant_rate_cards (user_id, rate_card, effective_from, created_by)
     values ($1, $2, coalesce($3::timestamptz, now()), $4)
     on conflict (user_id, effective_from) do update set rate_card = excluded.rate_card,
       created_by = excluded.created_by, created_at = now()
     returning effective_from`,
    [userId, name, effectiveFrom, createdBy],
  );
  if (!row) throw new Error("an upsert returned no row");
  return row;
}
