import { PIECES_SUFFIX } from "../../core/artifacts/plain-path";
import type { StoredObject } from "./object-store";

/** A part of an object that grows, where a store has no append. */
export interface Piece {
  /** Where in the object it begins and ends (`end` is the first byte after it). */
  start: number;
  end: number;
  /** Of its first bytes so many are the former piece's. */
  skipped: number;
  /** It is the object itself. */
  isWhole?: true;
}

const DIGITS = 15;

/** The folder of an object's pieces, beside it; no file of a job is called so (core/artifacts/plain-path.ts). */
export const pieceFolder = (key: string): string => `${key}${PIECES_SUFFIX}/`;

/** Pieces are named by where they begin, so that the order of their names is their order. */
export const pieceKey = (key: string, start: number): string =>
  `${pieceFolder(key)}${String(start).padStart(DIGITS, "0")}`;

/**
 * The pieces that make up an object, without gaps. Writers may have overlapped: bytes of one place are
 * the same in both, so the former's count. What lies behind a gap is not there yet.
 *
 * @param found the piece folder's objects, in order of name.
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
