import { createHash } from "node:crypto";
import { z } from "zod";

/** The fingerprint of a host's key, as `ssh-keygen -l` shows it. */
export const hostKeyField = z
  .string()
  .regex(
    /^SHA256:[A-Za-z0-9+/]{43}$/,
    "must be a fingerprint like SHA256:…, as ssh-keygen -l shows it",
  );

export const fingerprintOf = (key: Buffer): string =>
  `SHA256:${createHash("sha256")
    .update(key)
    .digest("base64")
    .replace(/(?<!=)=+$/, "")}`;
