import type { PagedList } from "../api/use-list";
import { Button } from "./button";
import { ErrorBanner } from "./error-banner";
import styles from "./list-table.module.css";
import { Table, type TableProps } from "./table";

interface QueryProps<Row> extends TableProps<Row> {
  error: unknown;
  retry: () => void;
  /** The error banner's text about what failed. */
  failed?: string;
}

/** A table of fetched rows. An error is shown above the loaded rows. */
export function QueryTable<Row>({
  error,
  retry,
  failed = "The list could not be updated",
  ...table
}: QueryProps<Row>) {
  return (
    <>
      {error !== null && <ErrorBanner what={failed} error={error} onRetry={retry} />}
      {(table.rows !== undefined || error === null) && <Table {...table} />}
    </>
  );
}

interface Props<Row> extends Omit<QueryProps<Row>, "rows" | "error" | "retry"> {
  list: PagedList<Row>;
  /** The name of the rows to load, e.g. "older jobs". */
  more: string;
}

/** A table with a button below it that loads the next page. */
export function ListTable<Row>({ list, more, ...table }: Props<Row>) {
  return (
    <>
      <QueryTable {...table} rows={list.rows} error={list.error} retry={list.retry} />
      <LoadMore list={list} what={more} />
    </>
  );
}

/** A button that loads the next page. Its label is "Load" and `what`, e.g. "Load older jobs". */
export function LoadMore({ list, what }: { list: PagedList<unknown>; what: string }) {
  if (!list.hasMore) return null;
  return (
    <Button className={styles.more} busy={list.isLoadingMore} onClick={list.loadMore}>
      {list.isLoadingMore ? "Loading …" : `Load ${what}`}
    </Button>
  );
}

/** A toolbar button that shows the new rows of a live list. */
export const NewRows = ({ list }: { list: { newCount: number; showNew: () => void } }) =>
  list.newCount > 0 && (
    <Button kind="primary" onClick={list.showNew}>
      {list.newCount} new
    </Button>
  );
