import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { matchesEtag } from "./conditional";

/** A file of a site, with its prebuilt encodings. */
export interface SiteFile {
  contentType: string;
  etag: () => string;
  /** Whether the file's name contains a hash of its content: then the content never changes. */
  isImmutable: boolean;
  /** The bytes by content encoding. */
  encodings: Partial<Record<"br" | "gzip", () => Buffer>> & { identity: () => Buffer };
}

/** A single-page application below a path. */
export interface Site {
  /** Starts and ends with a slash. */
  base: string;
  /** The files, by their paths below `base`. */
  files: ReadonlyMap<string, SiteFile>;
  /**
   * Sent for each path below the base that is neither a file nor below `assets/`, so that deep
   * links work.
   */
  index: SiteFile;
  contentSecurityPolicy: string;
}

const YEAR_S = 31_536_000;

/** Serves a site without a key, and redirects `/` to it. */
export function addSite(app: FastifyInstance, site: Site): void {
  const config = { open: true, page: true };
  app.get("/", { config }, async (_request, reply) => reply.redirect(site.base, 302));
  app.get(site.base, { config }, async (request, reply) => send(site, site.index, request, reply));
  app.get<{ Params: { "*": string } }>(`${site.base}*`, { config }, async (request, reply) => {
    const path = request.params["*"];
    const file = site.files.get(path);
    if (file) return send(site, file, request, reply);
    // Don't send the page for a missing asset: a browser would read it as a script.
    if (path.startsWith("assets/")) return reply.code(404).headers(NEVER_STORED).send();
    return send(site, site.index, request, reply);
  });
}

/** For a path that can't be decoded: responds with 404 and the index page, which shows an error. */
export function sendUndecodable(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return send(site, site.index, request, reply.code(404));
}

/** Whether a request is for the site. Uses the raw path, which may not be decodable. */
export const isForSite = ({ base }: Site, { method, raw }: FastifyRequest): boolean =>
  (method === "GET" || method === "HEAD") && (raw.url ?? "").startsWith(base);

const NEVER_STORED = { "cache-control": "no-store" };

function send(
  { contentSecurityPolicy }: Site,
  file: SiteFile,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const etag = file.etag();
  reply.headers({
    "content-security-policy": contentSecurityPolicy,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": file.isImmutable ? `public, max-age=${YEAR_S}, immutable` : "no-cache",
    etag,
    vary: "accept-encoding",
  });
  const isUnchanged = matchesEtag(request.headers["if-none-match"], etag);
  if (isUnchanged && reply.statusCode === 200) return reply.code(304).send();
  const encoding = encodingFor(file, request.headers["accept-encoding"]);
  if (encoding !== "identity") reply.header("content-encoding", encoding);
  return reply.type(file.contentType).send((file.encodings[encoding] ?? file.encodings.identity)());
}

/** The smallest encoding of a file that the client accepts. */
function encodingFor({ encodings }: SiteFile, header: unknown): keyof SiteFile["encodings"] {
  const accepted = typeof header === "string" ? header.toLowerCase().split(",") : [];
  const takes = (name: string): boolean =>
    accepted.some((item) => {
      const [token, ...parameters] = item.split(";").map((part) => part.trim());
      return token === name && !parameters.some((each) => /^q=0(\.0*)?$/.test(each));
    });
  const names = ["br", "gzip"] as const;
  return names.find((name) => encodings[name] && takes(name)) ?? "identity";
}
