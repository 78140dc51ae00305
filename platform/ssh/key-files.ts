import { readFile, realpath } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import ssh2 from "ssh2";
import { ConnectionRefused } from "../net/refused";

/** `~/` and `~/.ssh/` in a key path stand for the tenant's key directory on the server. */
const HOME = /^~\/(?:\.ssh\/)?/;

/** Used when a registration names no key file. */
export const DEFAULT_KEY_FILE = "id_ed25519";

/**
 * The directory whose keys a tenant may use: the tenant's own subdirectory of `keyDir`, because the
 * other keys give access to other tenants' machines. An admin may use all of `keyDir`.
 */
export const keyDirOf = (keyDir: string, userId: string, isAdmin: boolean): string =>
  isAdmin ? keyDir : join(keyDir, userId);

/**
 * Reads a private key from a file below `directory`. Refuses links that lead out of the directory.
 *
 * @throws ConnectionRefused with a message that names the file, but never shows its content.
 */
export async function readKeyFile(directory: string, path: string): Promise<Buffer> {
  const file = isAbsolute(path) ? path : join(directory, path.replace(HOME, ""));
  const outside = new ConnectionRefused(
    `there is no key file "${path}" in the directory of your SSH keys`,
  );
  let content: Buffer;
  try {
    const [root, real] = await Promise.all([realpath(directory), realpath(file)]);
    if (!real.startsWith(root + sep)) throw outside;
    content = await readFile(real);
  } catch {
    throw outside;
  }
  const parsed = ssh2.utils.parseKey(content);
  if (!(parsed instanceof Error) && parsed.isPrivateKey()) return content;
  const isEncrypted = parsed instanceof Error && /encrypted/i.test(parsed.message);
  const why = isEncrypted ? "is encrypted" : "is not a private key";
  throw new ConnectionRefused(`the key file "${path}" ${why}`);
}
