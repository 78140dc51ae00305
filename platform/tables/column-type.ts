import { type DuckDBType, DuckDBTypeId } from "@duckdb/node-api";

/** How a column's values are measured and shown. */
export type ColumnKind =
  | "integer"
  | "float"
  | "decimal"
  | "bool"
  | "string"
  // Dates, times and UUIDs: they have an order and are shown as text.
  | "ordered"
  // Other types: shown as text.
  | "other"
  | "binary"
  // Lists, structs, maps and other JSON.
  | "nested";

export interface ColumnType {
  /** Type name as in a manifest's schema, which uses Arrow's names. */
  dtype: string;
  kind: ColumnKind;
}

const type = (dtype: string, kind: ColumnKind): ColumnType => ({ dtype, kind });

const TYPES: Partial<Record<DuckDBTypeId, ColumnType>> = {
  [DuckDBTypeId.BOOLEAN]: type("bool", "bool"),
  [DuckDBTypeId.TINYINT]: type("int8", "integer"),
  [DuckDBTypeId.SMALLINT]: type("int16", "integer"),
  [DuckDBTypeId.INTEGER]: type("int32", "integer"),
  [DuckDBTypeId.BIGINT]: type("int64", "integer"),
  [DuckDBTypeId.HUGEINT]: type("int128", "integer"),
  [DuckDBTypeId.UTINYINT]: type("uint8", "integer"),
  [DuckDBTypeId.USMALLINT]: type("uint16", "integer"),
  [DuckDBTypeId.UINTEGER]: type("uint32", "integer"),
  [DuckDBTypeId.UBIGINT]: type("uint64", "integer"),
  [DuckDBTypeId.UHUGEINT]: type("uint128", "integer"),
  [DuckDBTypeId.FLOAT]: type("float", "float"),
  [DuckDBTypeId.DOUBLE]: type("double", "float"),
  [DuckDBTypeId.DECIMAL]: type("decimal", "decimal"),
  [DuckDBTypeId.VARCHAR]: type("string", "string"),
  [DuckDBTypeId.ENUM]: type("string", "string"),
  [DuckDBTypeId.BLOB]: type("binary", "binary"),
  [DuckDBTypeId.DATE]: type("date", "ordered"),
  [DuckDBTypeId.TIME]: type("time", "ordered"),
  [DuckDBTypeId.TIME_TZ]: type("time", "ordered"),
  [DuckDBTypeId.TIMESTAMP]: type("timestamp", "ordered"),
  [DuckDBTypeId.TIMESTAMP_S]: type("timestamp", "ordered"),
  [DuckDBTypeId.TIMESTAMP_MS]: type("timestamp", "ordered"),
  [DuckDBTypeId.TIMESTAMP_NS]: type("timestamp", "ordered"),
  [DuckDBTypeId.TIMESTAMP_TZ]: type("timestamp", "ordered"),
  [DuckDBTypeId.UUID]: type("uuid", "ordered"),
  [DuckDBTypeId.LIST]: type("list", "nested"),
  [DuckDBTypeId.ARRAY]: type("list", "nested"),
  [DuckDBTypeId.STRUCT]: type("struct", "nested"),
  [DuckDBTypeId.MAP]: type("map", "nested"),
};

export function columnType({ typeId, alias }: DuckDBType): ColumnType {
  if (alias === "JSON") return type("json", "nested");
  return TYPES[typeId] ?? type((DuckDBTypeId[typeId] ?? "unknown").toLowerCase(), "other");
}
