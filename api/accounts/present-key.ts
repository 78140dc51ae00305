import { z } from "zod";
import { SCOPES } from "../../core/accounts/permissions";
import { timestamp } from "../../core/timestamp";
import type { KeyRow } from "../../services/accounts/keys";
import { nullableText } from "../fields";

const keyFields = {
  key_id: z.string(),
  name: z.string(),
  scope: z.enum(SCOPES),
  last4: z.string(),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable().describe("accurate to the minute"),
  revoked_at: timestamp.nullable(),
  workers: z
    .int()
    .nullable()
    .describe("for a worker key: how many workers it may register; null: any"),
  serving_hosts: z
    .array(z.string())
    .describe("hosts that may serve its workers' models, besides the workers' own addresses"),
  made_by: nullableText.describe(
    "the id of the key that created this key; revoking that key revokes this one too",
  ),
  session_of: nullableText.describe("for a session: the id of the key exchanged for it"),
};

export const keySchema = z.object(keyFields).meta({ id: "ApiKey" });

export const newKeySchema = z
  .object({ ...keyFields, key: nullableText.describe("the key's secret value, shown only here") })
  .meta({ id: "NewApiKey" });

export function presentKey(key: KeyRow): z.infer<typeof keySchema> {
  return {
    key_id: key.key_id,
    name: key.name,
    scope: key.scope,
    last4: key.last4,
    created_at: key.created_at.toISOString(),
    expires_at: key.expires_at?.toISOString() ?? null,
    last_used_at: key.last_used_at?.toISOString() ?? null,
    revoked_at: key.revoked_at?.toISOString() ?? null,
    workers: key.workers,
    serving_hosts: key.serving_hosts,
    made_by: key.made_by_key_id,
    session_of: key.session_of,
  };
}

export type NewKeyShown = z.infer<typeof newKeySchema>;

export const presentNewKey = (created: KeyRow & { key: string }): NewKeyShown => ({
  ...presentKey(created),
  key: created.key,
});

/** The response that is stored for idempotent retries: the key's secret value is never stored. */
export const withoutSecret = (shown: NewKeyShown): NewKeyShown => ({ ...shown, key: null });
