import { readFile, realpath } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import ssh2 from "ssh2";
import { ConnectionRefused } from "../net/refused";

/** A tenant's home on the server is the directory of its keys. */
const HOME = /^~\/(?:\.ssh\/)?/;

/** Looked for where a registration names no file. */
export const DEFAULT_KEY_FILE = "id_ed25519";

/**
 * The directory whose keys a tenant may use: its own below the configured one, which is an admin's as a
 * whole. Otherwise a tenant could log in to another's machines by the name of another's key.
 */
export const keyDirOf = (keyDir: string, userId: string, isAdmin: boolean): string =>
  isAdmin ? keyDir : join(keyDir, userId);

/**
 * Reads a private key from a file below `directory`, following no link that leads out of it.
 *
 * @throws ConnectionRefused with a message that names the file, never what is in it.
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
  if (!(parsed instanceof Error) && !parsed.isPrivateKey()) {
    throw new ConnectionRefused(`the key file "${path}" is no private key`);
  }
  if (parsed instanceof Error) {
    const why = /encrypted/i.test(parsed.message) ? "is encrypted" : "is no private key";
    throw new ConnectionRefused(`the key file "${path}" ${why}`);
  }
  return content;
}
