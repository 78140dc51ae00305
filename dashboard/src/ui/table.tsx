import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { cx } from "./cx";
import { useScrollArea } from "./scroll-area";
import { SkeletonLines } from "./skeleton";
import styles from "./table.module.css";
import { useRowKeys } from "./use-row-keys";

export interface Column<Row> {
  id: string;
  title: string;
  /** The width as CSS, e.g. "120px". Columns without a width share the remaining space. */
  width?: string;
  align?: "right";
  /** Hides the column below this window width. */
  hideBelow?: "phone" | "tablet" | "laptop";
  cell: (row: Row) => ReactNode;
}

export interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[] | undefined;
  rowId: (row: Row) => string;
  /** Called on a click or Enter. A link in the row should open the same page. */
  onOpen?: (row: Row) => void;
  /** Shown if there are no rows. */
  empty: ReactNode;
}

const ROW_PX = matchMedia("(pointer: coarse), (max-width: 560px)").matches ? 44 : 33;
const OVERSCAN = 6;

/**
 * A table of any length: only the visible rows are in the DOM. Shows the rows in the given order.
 * The keys `j` and `k` move between rows. Enter opens the current row.
 */
export function Table<Row>({ label, columns, rows, rowId, onOpen, empty }: TableProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const area = useScrollArea();
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    if (!body.current || !area) return;
    const top = body.current.getBoundingClientRect().top;
    setMargin(top - area.getBoundingClientRect().top + area.scrollTop);
  }, [area]);
  const virtual = useVirtualizer({
    count: rows?.length ?? 0,
    getScrollElement: () => area,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    scrollMargin: margin,
  });
  const keys = useRowKeys({
    count: rows?.length ?? 0,
    body,
    show: (at) => virtual.scrollToIndex(at, { align: "auto" }),
    open: (at) => {
      const row = rows?.[at];
      if (row !== undefined) onOpen?.(row);
    },
  });
  if (rows === undefined) return <SkeletonLines count={8} />;
  if (rows.length === 0) return empty;
  const items = virtual.getVirtualItems();
  const above = items.length > 0 ? (items[0]?.start ?? 0) - margin : 0;
  const below = virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin);
  return (
    <table className={styles.table} aria-label={label} aria-rowcount={rows.length + 1}>
      <colgroup>
        {columns.map((column) => (
          <col
            key={column.id}
            className={hidden(column)}
            style={column.width ? { width: column.width } : {}}
          />
        ))}
      </colgroup>
      <thead className={styles.head}>
        <tr>
          {columns.map((column) => (
            <th key={column.id} scope="col" className={cellClass(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body} onClick={keys.onClick}>
        <Spacer height={above} columns={columns.length} />
        {items.map(({ index }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <tr
              key={rowId(row)}
              data-index={index}
              aria-rowindex={index + 2}
              className={cx(
                styles.row,
                onOpen && styles.opens,
                keys.active === index && styles.active,
              )}
            >
              {columns.map((column) => (
                <td key={column.id} className={cellClass(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          );
        })}
        <Spacer height={below} columns={columns.length} />
      </tbody>
    </table>
  );
}

/** An empty row that fills the height of the rows that are not rendered above or below. */
function Spacer({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}

const hidden = <Row,>({ hideBelow }: Column<Row>): string | undefined =>
  hideBelow &&
  { phone: styles.fromPhone, tablet: styles.fromTablet, laptop: styles.fromLaptop }[hideBelow];

const cellClass = <Row,>(column: Column<Row>): string =>
  cx(styles.cell, column.align === "right" && styles.right, hidden(column));
