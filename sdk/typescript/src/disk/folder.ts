import { createReadStream, type Stats } from "node:fs";
import { lstat, mkdir, readdir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { UnsafePathError } from "../errors.ts";
import { segmentsOf } from "../paths.ts";
import { checkContent, type FileCheck, type ManifestFile } from "../verification.ts";

/**
 * Returns where to write a file below a root. Creates the file's folders.
 *
 * Rejects with UnsafePathError for an unsafe path, and if the file or one of its folders is a
 * symbolic link, which may lead out of the root.
 */
export async function prepare(root: string, path: string): Promise<string> {
  const segments = segmentsOf(path);
  let place = root;
  for (const folder of segments.slice(0, -1)) {
    place = join(place, folder);
    // `recursive`: no error if another process creates the folder at the same time.
    if (!(await statOf(place))) await mkdir(place, { recursive: true });
    if (!(await statOf(place))?.isDirectory()) {
      throw new UnsafePathError(`${place} is not a folder; not writing through it`);
    }
  }
  const target = join(place, segments.at(-1) ?? "");
  if ((await statOf(target))?.isSymbolicLink()) {
    throw new UnsafePathError(`${target} is a symbolic link; not replacing it`);
  }
  return target;
}

/**
 * Returns the path of a file below a root. Undefined if the file does not exist, or if the file or
 * one of its folders is a symbolic link. Rejects with UnsafePathError for an unsafe path.
 */
export async function find(root: string, path: string): Promise<string | undefined> {
  const segments = segmentsOf(path);
  let place = root;
  for (const folder of segments.slice(0, -1)) {
    place = join(place, folder);
    if (!(await statOf(place))?.isDirectory()) return undefined;
  }
  const target = join(place, segments.at(-1) ?? "");
  return (await statOf(target))?.isFile() ? target : undefined;
}

/** Compares a file below a root with its manifest's entry. */
export async function checkLocal(root: string, file: ManifestFile): Promise<FileCheck> {
  const place = await find(root, file.path);
  if (!place) return { path: file.path, outcome: "missing", detail: null };
  const { size = 0 } = (await statOf(place)) ?? {};
  if (size !== file.size_bytes) {
    const detail = `${size} bytes, not ${file.size_bytes}`;
    return { path: file.path, outcome: "size_differs", detail };
  }
  return await checkContent(file, createReadStream(place));
}

/** The paths of all files below a root, including links to folders. */
export async function filesBelow(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"));
}

/** Reads the metadata of a file, without following links. Undefined if there is no such file. */
async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
