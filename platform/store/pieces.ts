import { PIECES_SUFFIX } from "../../core/artifacts/plain-path";
import type { StoredObject } from "./object-store";

/** A part of a growing object, for stores without append. */
export interface Piece {
  /** Offsets in the object; `end` is exclusive. */
  start: number;
  end: number;
  /** The number of bytes at the start of this piece that the previous piece already has. */
  skipped: number;
  /** Whether the piece is stored as the object itself, instead of in the piece folder. */
  isWhole?: true;
}

const DIGITS = 15;

/**
 * The folder of an object's pieces. A job can't write into such a folder: plain-path.ts refuses the
 * path.
 */
export const pieceFolder = (key: string): string => `${key}${PIECES_SUFFIX}/`;

/** A piece is named by its zero-padded offset, so that names sort by offset. */
export const pieceKey = (key: string, start: number): string =>
  `${pieceFolder(key)}${String(start).padStart(DIGITS, "0")}`;

/**
 * Selects the pieces that make up an object without gaps. Pieces may overlap; they then hold the
 * same bytes, and the earlier piece wins. Pieces after a gap are ignored.
 *
 * @param found the objects in the piece folder, ordered by name.
 */
export function gather(found: StoredObject[]): Piece[] {
  const pieces: Piece[] = [];
  let position = 0;
  for (const { path, sizeBytes } of found) {
    const start = Number(path);
    const end = start + sizeBytes;
    if (!Number.isInteger(start) || start > position) break;
    if (end <= position && pieces.length > 0) continue;
    pieces.push({ start, end, skipped: position - start });
    position = end;
  }
  return pieces;
}
