import { platform } from "#platform";
import { ForgeAPIError, ForgeError, ForgeHTTPError } from "./errors.ts";
import { Exchange, textOf } from "./exchange.ts";
import { jsonText } from "./json.ts";
import { requireCount, requirePositive } from "./limits.ts";
import type { CreateOptions, RequestOptions } from "./options.ts";
import { pause } from "./pause.ts";
import { CLIENT_HEADER, checkVersion } from "./release.ts";
import { get, queryText, type Request, randomHex } from "./request.ts";
import {
  errorForResponse,
  objectOf,
  parseJson,
  RetryPolicy,
  TransientFailure,
} from "./retry-policy.ts";
import type { Settings } from "./settings.ts";
import { Upload } from "./upload.ts";

/** An open response, to be read in chunks. */
export interface Opened {
  response: Response;
  chunks: AsyncGenerator<Uint8Array, void, undefined>;
  close(): void;
}

type SendInit = RequestInit & { duplex?: "half" };

export class Transport {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  retryPolicy({ maxRetries }: RequestOptions = {}, atLeastMs = 0): RetryPolicy {
    if (maxRetries !== undefined) requireCount("maxRetries", maxRetries);
    return new RetryPolicy(maxRetries ?? this.#settings.maxRetries, atLeastMs);
  }

  /** Returns the JSON object. Rejects with ForgeHTTPError, ForgeAPIError or a signal's reason. */
  async json<T extends object>(
    request: Request,
    options: CreateOptions = {},
    retryPolicy?: RetryPolicy,
  ): Promise<T> {
    return await this.#read(
      request,
      options,
      (text, status) => {
        const answer = objectOf(parseJson(text));
        if (answer) return answer as T;
        throw new ForgeHTTPError(`${request.path}: the response is not a JSON object`, { status });
      },
      retryPolicy,
    );
  }

  async text(request: Request, options: RequestOptions = {}): Promise<string> {
    return await this.#read(request, options, (text) => text);
  }

  /** Opens a response. Does not retry: may reject with TransientFailure. The caller closes it. */
  async open(
    request: Request,
    { signal, timeoutMs }: RequestOptions = {},
    silenceMs = this.#settings.timeoutMs,
  ): Promise<Opened> {
    if (timeoutMs !== undefined) requirePositive("timeoutMs", timeoutMs);
    const isRepeatable = request.isRepeatable !== false;
    const minTimeoutMs = Math.max(silenceMs, request.minTimeoutMs ?? 0);
    const exchange = new Exchange({
      fetch: this.#settings.fetch,
      silenceMs: timeoutMs ?? minTimeoutMs + extraTimeoutMs(request.body),
      signal,
      failure: (reason, cause) => {
        const address = `${this.#settings.baseUrl}${request.path}`;
        const final = new ForgeHTTPError(`${address}: ${reason}`, {}, { cause });
        return isRepeatable || platform.wasNotSent(cause) ? new TransientFailure(final) : final;
      },
    });
    try {
      const url = `${this.#settings.baseUrl}${request.path}${queryText(request.query)}`;
      const response = await exchange.send(url, this.#init(request, exchange));
      checkVersion(response.headers, this.#settings.onWarning);
      if (!response.ok && response.status !== request.otherStatus) {
        const body = await textOf(exchange.chunks(response));
        throw errorForResponse(request.path, response, body, isRepeatable);
      }
      const chunks = exchange.chunks(response);
      return { response, chunks, close: () => exchange.close() };
    } catch (error) {
      exchange.close();
      throw error;
    }
  }

  /** Pauses before the next try. If no next try is allowed, rejects with the final error. */
  async pause(error: unknown, retryPolicy: RetryPolicy, signal?: AbortSignal): Promise<void> {
    if (!(error instanceof TransientFailure)) throw error;
    await pause(retryPolicy.pauseMs(error), signal);
  }

  async #read<T>(
    given: Request,
    options: CreateOptions,
    parse: (text: string, status: number) => T,
    retryPolicy = this.retryPolicy(options),
  ): Promise<T> {
    const request = ready(given, options);
    for (let isAgain = false; ; isAgain = true) {
      try {
        const opened = await this.open(request, options);
        try {
          return parse(await textOf(opened.chunks), opened.response.status);
        } finally {
          opened.close();
        }
      } catch (error) {
        const { appliedCheck } = request;
        if (isAgain && appliedCheck && isRefusal(error, appliedCheck.codes)) {
          const found = await this.#read(get(appliedCheck.path), options, parse);
          if (appliedCheck.isOurs(found)) return found;
        }
        await this.pause(error, retryPolicy, options.signal);
      }
    }
  }

  #keyHeader(): Record<string, string> {
    const { apiKey, bearer } = this.#settings;
    return bearer ? { Authorization: `Bearer ${apiKey}` } : { "X-Service-Api-Key": apiKey };
  }

  #init(request: Request, exchange: Exchange): SendInit {
    const headers = {
      Accept: "application/json",
      ...this.#keyHeader(),
      ...CLIENT_HEADER,
      ...request.headers,
    };
    const { method, body } = request;
    if (body instanceof Upload) {
      const sent = body.init(() => exchange.alive());
      return { method, ...sent, headers: { ...headers, ...sent.headers } };
    }
    if (body === undefined) return { method, headers };
    const json = { "Content-Type": "application/json", ...headers };
    return { method, headers: json, body: jsonText(body) };
  }
}

/** Additional time-out in ms for an upload without progress events. 0 for other requests. */
const extraTimeoutMs = (body: Request["body"]): number =>
  body instanceof Upload ? body.extraTimeoutMs : 0;

const isRefusal = (error: unknown, codes: readonly string[]): boolean =>
  error instanceof ForgeAPIError && codes.includes(error.code);

/** Adds the idempotency key, which stays the same for all retries. */
function ready(request: Request, { idempotencyKey }: CreateOptions): Request {
  if (!request.creates) return request;
  const key = idempotencyKey ?? `sdk-${randomHex()}`;
  // fetch would refuse an invalid header value with a less clear message.
  if (!/^(?! )[\x20-\x7e]{1,255}(?<! )$/.test(key)) {
    throw new ForgeError("idempotencyKey must be up to 255 printable ASCII characters");
  }
  return { ...request, headers: { ...request.headers, "Idempotency-Key": key } };
}
