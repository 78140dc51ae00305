import type { Listing, ListOptions } from "../listing.ts";
import type { CreateOptions, Moment, OfUser, RequestOptions } from "../options.ts";
import { create, path, put, remove } from "../request.ts";
import type { ApiKey, NewApiKey, NewUser, Operations, RateCard, User } from "../schema.ts";
import { Resource } from "./resource.ts";

export interface NewKeyOptions {
  scope?: ApiKey["scope"];
  expires_at?: Moment;
  /**
   * Maximum number of workers that a `worker` key can register. Default: no maximum. If this is
   * set, the key can act only for the workers that it registered.
   */
  workers?: number;
  /**
   * Additional hosts that may serve the workers' models. The workers' own addresses are always
   * allowed. Requires `workers`.
   */
  serving_hosts?: string[];
}

/** `client.apiKeys`. */
export class ApiKeys extends Resource {
  /**
   * Creates a key. `scope` is `user` or `worker`. Admins can also create `admin` keys.
   *
   * The key's secret value, `key`, is returned only once. If the response is lost, the request is
   * not retried: find the new key with `list`, and revoke it.
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
   * Exchanges this client's key for a session.
   *
   * A session is a new key with the scope and name of this client's key. It is valid for 12 hours.
   * It ends earlier if this client's key expires or is revoked. Pass the session's `key` to another
   * client, and end the session with `revoke`. As with any new key, `key` is returned only once.
   */
  async createSession(options?: CreateOptions): Promise<NewApiKey> {
    const request = { ...create("/api/auth/sessions", {}), isRepeatable: false };
    return await this.transport.json(request, options);
  }

  /**
   * Lists keys, newest first, without their secret values. `limit`: maximum number in total. With
   * `sessions`, lists sessions instead.
   */
  list(
    filters: ListOptions & OfUser & { sessions?: boolean | undefined } = {},
    options?: RequestOptions,
  ): Listing<ApiKey> {
    return this.listing({ path: "/api/auth/api-keys", name: "api_keys", query: filters, options });
  }

  /** Revokes a key immediately. */
  async revoke(
    keyId: string,
    options?: RequestOptions,
  ): Promise<Operations["revokeApiKey"]["answer"]> {
    return await this.transport.json(remove(path`/api/auth/api-keys/${keyId}`), options);
  }
}

/** `client.users`, for admins. */
export class Users extends Resource {
  /** Creates a tenant with its first key. The key's secret value is returned only once. */
  async create(
    name: string,
    { user_id }: { user_id?: string | undefined } = {},
    options?: CreateOptions,
  ): Promise<NewUser> {
    const request = { ...create("/api/admin/users", { name, user_id }), isRepeatable: false };
    return await this.transport.json(request, options);
  }

  /** Lists tenants, newest first. `limit`: maximum number in total. */
  list(filters: ListOptions = {}, options?: RequestOptions): Listing<User> {
    return this.listing({ path: "/api/admin/users", name: "users", query: filters, options });
  }

  /** Sets the tenant's customer id at the payment processor. null removes it. */
  async setPaymentCustomer(
    userId: string,
    paymentCustomerId: string | null,
    options?: RequestOptions,
  ): Promise<User> {
    const body = { payment_customer_id: paymentCustomerId };
    const request = put(path`/api/admin/users/${userId}/payment-customer`, body);
    return await this.transport.json(request, options);
  }

  /** Assigns a rate card to a tenant, for jobs submitted from `effective_from` on. */
  async setRateCard(
    userId: string,
    rateCard: string,
    { effective_from }: { effective_from?: Moment | undefined } = {},
    options?: RequestOptions,
  ): Promise<Operations["assignRateCard"]["answer"]> {
    const body = { rate_card: rateCard, effective_from };
    const request = put(path`/api/admin/users/${userId}/rate-card`, body);
    return await this.transport.json(request, options);
  }
}

/** `client.rateCards`, for admins. */
export class RateCards extends Resource {
  /** Creates a new version of a card. Versions are immutable. Prices are decimal strings. */
  async create(
    name: string,
    prices: Operations["createRateCard"]["body"]["prices"],
    { effective_from }: { effective_from?: Moment | undefined } = {},
    options?: CreateOptions,
  ): Promise<RateCard> {
    const body = { name, prices, effective_from };
    return await this.transport.json(create("/api/admin/rate-cards", body), options);
  }

  /** Lists all versions of all cards. `limit`: maximum number in total. */
  list(filters: ListOptions = {}, options?: RequestOptions): Listing<RateCard> {
    const address = { path: "/api/admin/rate-cards", name: "rate_cards" };
    return this.listing({ ...address, query: filters, options });
  }
}
