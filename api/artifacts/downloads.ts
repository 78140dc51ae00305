import { randomBytes } from "node:crypto";
import { z } from "zod";
import { ForgeError } from "../../core/errors";
import { timestamp } from "../../core/timestamp";
import { attachmentOf } from "../../platform/http/attachment";
import { sendObject } from "../../platform/http/byte-range";
import { type Route, route } from "../../platform/http/route";
import { keyDigest } from "../../services/accounts/key-format";
import { findTicket, insertTicket } from "../../services/artifacts/download-tickets";
import type { Context } from "../../services/context";
import { tenantQuery } from "../accounts/tenant-filter";
import { BINARY, findFile } from "./artifact-files";
import { requireBytes } from "./find-artifact";

const LIFETIME_S = 60;
const TICKET = /^[A-Za-z0-9_-]{43}$/;

const ticketSchema = z
  .object({
    url: z.string().describe("a path of this API, with the ticket; needs no API key"),
    expires_at: timestamp,
    path: z.string(),
    size_bytes: z.int(),
  })
  .meta({ id: "DownloadTicket" });

export function downloadRoutes(ctx: Context): Route[] {
  return [
    route({
      method: "POST",
      paths: ["/api/artifacts/:artifact_id/tickets"],
      scope: "user",
      outsideConnectionQueue: true,
      operationId: "createDownloadTicket",
      tag: "Artifacts",
      summary: "Create a download link for a file of an artifact",
      description:
        `The link works without a key for ${LIFETIME_S} seconds, so that a browser can save the file. It stops ` +
        "working earlier if the key that created it becomes invalid.",
      query: z.strictObject(tenantQuery),
      body: {
        schema: z.strictObject({
          path: z.string().min(1).max(1024).describe("file path, as in the manifest's `files`"),
        }),
        examples: { file: { path: "raw.jsonl" } },
      },
      responses: { 201: { description: "the link", schema: ticketSchema } },
      errorCodes: {
        400: ["ambiguous_id"],
        404: ["artifact_not_found", "file_not_found"],
        410: ["artifact_deleted"],
      },
      async handle(call) {
        const { path } = call.body;
        const artifact = await requireBytes(ctx, call);
        const { sizeBytes } = await findFile(ctx, artifact, path);
        const ticket = randomBytes(32).toString("base64url");
        const expiresAt = await insertTicket(ctx.pool, {
          digest: keyDigest(ticket),
          keyId: call.principal.keyId,
          userId: artifact.user_id,
          storageId: artifact.storage_id,
          path,
          lastsS: LIFETIME_S,
        });
        call.reply.header("cache-control", "no-store");
        return {
          // The ticket is in the query string, which is never logged.
          url: `/api/downloads?ticket=${ticket}`,
          expires_at: expiresAt.toISOString(),
          path,
          size_bytes: sizeBytes,
        };
      },
    }),
    route({
      method: "GET",
      paths: ["/api/downloads"],
      scope: "open",
      operationId: "downloadByTicket",
      tag: "Artifacts",
      summary: "Download a file by its ticket",
      query: z.strictObject({ ticket: z.string() }),
      headers: { Range: z.string().optional().describe("bytes=a-b, bytes=a- or bytes=-n") },
      responses: {
        200: { description: "the file's bytes, as an attachment", content: BINARY },
        206: { description: "the requested range", content: BINARY },
      },
      errorCodes: {
        403: ["invalid_ticket"],
        404: ["artifact_not_found", "file_not_found"],
        410: ["artifact_deleted"],
        416: ["range_not_satisfiable"],
      },
      async handle({ query, headers, request, reply }) {
        const ticket = TICKET.test(query.ticket)
          ? await findTicket(ctx.pool, keyDigest(query.ticket))
          : undefined;
        if (!ticket) {
          const message = "the link is invalid or has expired; create another one";
          throw new ForgeError(403, "invalid_ticket", message);
        }
        const artifact = await requireBytes(ctx, {
          params: { artifact_id: ticket.storage_id },
          principal: { scope: "user", userId: ticket.user_id },
          query: {},
        });
        const file = await findFile(ctx, artifact, ticket.path);
        const caller = { keyId: ticket.key_id, userId: ticket.key_user_id, scope: ticket.scope };
        ctx.waitingRequests.register(request, caller, reply);
        reply
          .type("application/octet-stream")
          .header("content-disposition", attachmentOf(ticket.path))
          .header("cache-control", "no-store");
        return sendObject(ctx.store, file, headers.Range, reply);
      },
    }),
  ];
}
