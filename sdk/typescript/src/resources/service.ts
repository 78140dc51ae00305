import type { RequestOptions } from "../options.ts";
import { get } from "../request.ts";
import type { Operations } from "../schema.ts";
import { Resource } from "./resource.ts";

/** `client.service`. */
export class Service extends Resource {
  /** Whether the key is good, and whose it is. */
  async ping(options?: RequestOptions): Promise<Operations["ping"]["answer"]> {
    return await this.transport.json(get("/api/auth/ping"), options);
  }

  /** What your tenant may have and do, and how much of it there is; an admin may name one. */
  async limits(
    { user_id }: { user_id?: string | undefined } = {},
    options?: RequestOptions,
  ): Promise<Operations["getLimits"]["answer"]["limits"]> {
    const answer = await this.transport.json<Operations["getLimits"]["answer"]>(
      get("/api/limits", { user_id }),
      options,
    );
    return answer.limits;
  }

  /** Whether the server answers; no key is looked at. */
  async isAlive(options?: RequestOptions): Promise<boolean> {
    const { ok } = await this.transport.json<{ ok: unknown }>(get("/healthz"), options);
    return ok === true;
  }

  /** Whether it can do its work. Rejects with ForgeHTTPError where it says that it can't. */
  async isReady(options?: RequestOptions): Promise<Operations["isReady"]["answer"]> {
    return await this.transport.json(get("/readyz"), options);
  }

  /** The API, as an OpenAPI document. */
  async openapi(options?: RequestOptions): Promise<Record<string, unknown>> {
    return await this.transport.json(get("/openapi.json"), options);
  }
}
