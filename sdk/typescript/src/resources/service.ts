import type { OfUser, RequestOptions } from "../options.ts";
import { get } from "../request.ts";
import type { Operations } from "../schema.ts";
import { Resource } from "./resource.ts";

/** `client.service`. */
export class Service extends Resource {
  /** Checks the key and reads its owner. */
  async ping(options?: RequestOptions): Promise<Operations["ping"]["answer"]> {
    return await this.transport.json(get("/api/auth/ping"), options);
  }

  /** Reads your tenant's limits and their usage. Admins can choose the tenant. */
  async limits(
    { user_id }: OfUser = {},
    options?: RequestOptions,
  ): Promise<Operations["getLimits"]["answer"]["limits"]> {
    const answer = await this.transport.json<Operations["getLimits"]["answer"]>(
      get("/api/limits", { user_id }),
      options,
    );
    return answer.limits;
  }

  /** Whether the server responds. Needs no key. */
  async isAlive(options?: RequestOptions): Promise<boolean> {
    const { ok } = await this.transport.json<{ ok: unknown }>(get("/healthz"), options);
    return ok === true;
  }

  /** Whether the server is ready. Rejects with ForgeHTTPError if it is not. */
  async isReady(options?: RequestOptions): Promise<Operations["isReady"]["answer"]> {
    return await this.transport.json(get("/readyz"), options);
  }

  /** Reads the API's OpenAPI document. */
  async openapi(options?: RequestOptions): Promise<Record<string, unknown>> {
    return await this.transport.json(get("/openapi.json"), options);
  }
}
