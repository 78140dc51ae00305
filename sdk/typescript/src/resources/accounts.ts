import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, Moment, RequestOptions } from "../options.ts";
import { create, path } from "../request.ts";
import type { ApiKey, NewApiKey, NewUser, Operations, RateCard, User } from "../schema.ts";
import { Resource } from "./resource.ts";

export interface NewKeyOptions {
  scope?: ApiKey["scope"];
  expires_at?: Moment;
  /** Of a worker key: it registers so many workers, and acts for no other. */
  workers?: number;
  /** With `workers`: hosts that their models may be served from, besides the workers' own addresses. */
  serving_hosts?: string[];
}

/** `client.apiKeys`. */
export class ApiKeys extends Resource {
  /**
   * Makes a key, of scope `user` or `worker`; an admin's also `admin`.
   *
   * Its text, `key`, is told here and never again. So it is not asked for again where the answer is
   * lost: `list` has the key that nobody knows, to be revoked.
   */
  async create(
    name?: string | null,
    { expires_at, ...given }: NewKeyOptions = {},
    options?: CreateOptions,
  ): Promise<NewApiKey> {
    const body = { name: name ?? undefined, ...given, expires_at };
    const request = { ...create("/api/auth/api-keys", body), isRepeatable: false };
    return await this.transport.json(request, options);
  }

  /**
   * Exchanges this client's key for a session: a key of the same scope and name for 12 hours, which
   * ends with the key. Give its text to another client; sign out with `revoke`.
   *
   * As with any new key, the text is told here and never again.
   */
  async createSession(options?: CreateOptions): Promise<NewApiKey> {
    const request = { ...create("/api/auth/sessions", {}), isRepeatable: false };
    return await this.transport.json(request, options);
  }

  /**
   * Keys, newest first, without their texts; `limit` is how many in all. With `sessions`, the
   * sessions that keys were exchanged for in their place.
   */
  list(
    filters: ListOptions & { user_id?: string | undefined; sessions?: boolean | undefined } = {},
    options?: RequestOptions,
  ): Listing<ApiKey> {
    return this.listing({ path: "/api/auth/api-keys", name: "api_keys", query: filters, options });
  }

  /** Ends a key, at once. */
  async revoke(
    keyId: string,
    options?: RequestOptions,
  ): Promise<Operations["revokeApiKey"]["answer"]> {
    const request = { method: "DELETE", path: path`/api/auth/api-keys/${keyId}` };
    return await this.transport.json(request, options);
  }
}

/** `client.users`, for admins. */
export class Users extends Resource {
  /** Makes a tenant, with its first key, of which the same holds as of any new key. */
  async create(
    name: string,
    { user_id }: { user_id?: string | undefined } = {},
    options?: CreateOptions,
  ): Promise<NewUser> {
    const request = { ...create("/api/admin/users", { name, user_id }), isRepeatable: false };
    return await this.transport.json(request, options);
  }

  /** Tenants, newest first; `limit` is how many in all. */
  list(filters: ListOptions = {}, options?: RequestOptions): Listing<User> {
    return this.listing({ path: "/api/admin/users", name: "users", query: filters, options });
  }

  /** Says who pays, in the words of the payment processor; null: nobody. */
  async setPaymentCustomer(
    userId: string,
    paymentCustomerId: string | null,
    options?: RequestOptions,
  ): Promise<User> {
    const body = { payment_customer_id: paymentCustomerId };
    const address = path`/api/admin/users/${userId}/payment-customer`;
    return await this.transport.json({ method: "PUT", path: address, body }, options);
  }

  /** Bills a tenant by a card, from a date on. */
  async setRateCard(
    userId: string,
    rateCard: string,
    { effective_from }: { effective_from?: Moment | undefined } = {},
    options?: RequestOptions,
  ): Promise<Operations["assignRateCard"]["answer"]> {
    const body = { rate_card: rateCard, effective_from };
    const address = path`/api/admin/users/${userId}/rate-card`;
    return await this.transport.json({ method: "PUT", path: address, body }, options);
  }
}

/** `client.rateCards`, for admins. */
export class RateCards extends Resource {
  /** Makes another version of a card; none is ever changed. Prices are decimal texts. */
  async create(
    name: string,
    prices: Operations["createRateCard"]["body"]["prices"],
    { effective_from }: { effective_from?: Moment | undefined } = {},
    options?: CreateOptions,
  ): Promise<RateCard> {
    const body = { name, prices, effective_from };
    return await this.transport.json(create("/api/admin/rate-cards", body), options);
  }

  /** All versions of all cards; `limit` is how many in all. */
  list(filters: ListOptions = {}, options?: RequestOptions): Listing<RateCard> {
    const address = { path: "/api/admin/rate-cards", name: "rate_cards" };
    return this.listing({ ...address, query: filters, options });
  }
}
