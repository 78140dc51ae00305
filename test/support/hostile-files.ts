import type { TableFormat } from "../../platform/tables/table-format";
import { parquetOf, varint } from "./parquet-bytes";

/** A table built to harm its reader. */
export interface HostileFile {
  what: string;
  format: TableFormat;
  /** Generated on demand: some are large. */
  bytes(): Buffer;
}

/**
 * The schema (field 2 of a parquet footer) with this many elements, each called "a" and without
 * children.
 */
function schemaOf(elements: number): Buffer {
  const element = Buffer.from([0x48, 1, 0x61, 0x15, 0, 0]);
  return Buffer.concat([
    Buffer.from([0x15, 2, 0x19, 0xfc, ...varint(elements)]),
    Buffer.alloc(elements * element.length, element),
    Buffer.from([0x16, 2, 0x19, 0x0c, 0]),
  ]);
}

const LIST_OF_LISTS = 0xf9;
const MIB = 1024 * 1024;

export const HOSTILE_FILES: HostileFile[] = [
  {
    what: "parquet: lists in lists, each of which claims 30 million",
    format: "parquet",
    bytes: () =>
      parquetOf(
        Buffer.from([
          0x19,
          ...Array.from({ length: 24 }, () => [LIST_OF_LISTS, ...varint(30_000_000)]).flat(),
          0,
        ]),
      ),
  },
  {
    what: "parquet: a footer of half a million columns",
    format: "parquet",
    bytes: () => parquetOf(schemaOf(500_000)),
  },
  {
    what: "parquet: a text in the footer that claims two gigabytes",
    format: "parquet",
    bytes: () => parquetOf(Buffer.from([0x18, ...varint(2_000_000_000), 0x61, 0])),
  },
  {
    what: "CSV: one cell of digits and an x",
    format: "csv",
    bytes: () => Buffer.from(`a\n${"1".repeat(60_000)}x\n`),
  },
  {
    what: "CSV: a header without an end",
    format: "csv",
    bytes: () => Buffer.alloc(12 * MIB, ","),
  },
  {
    what: "CSV: a quote that is never closed",
    format: "csv",
    bytes: () => Buffer.from(`a\n"${"x\n".repeat(4 * MIB)}`),
  },
  {
    what: "JSON lines: a row of millions of objects",
    format: "jsonl",
    bytes: () => Buffer.from(`{"a":[${"{},".repeat(4_000_000)}0]}\n`),
  },
  {
    what: "JSON lines: a row six million levels deep",
    format: "jsonl",
    bytes: () => Buffer.from(`{"a":${"[".repeat(6_000_000)}${"]".repeat(6_000_000)}}\n`),
  },
  {
    what: "JSON lines: a row of a million names",
    format: "jsonl",
    bytes: () =>
      Buffer.from(`{${Array.from({ length: 1_000_000 }, (_, n) => `"k${n}":1`).join()}}\n`),
  },
];
