import { Button } from "./button";
import { ErrorBanner } from "./error-banner";
import { LoadMore } from "./load-more";
import { Table, type TableProps } from "./table";

interface List<Row> {
  /** Undefined while the first page is loaded. */
  rows: Row[] | undefined;
  error: unknown;
  retry: () => void;
  hasMore: boolean;
  loadMore: () => void;
  isLoadingMore: boolean;
}

interface Props<Row> extends Omit<TableProps<Row>, "rows"> {
  list: List<Row>;
  /** The name of the rows to load, e.g. "older jobs". */
  more: string;
  /** The title of an error. */
  failed?: string;
}

/** A table of a paginated list. An error is shown above the loaded rows. */
export function ListTable<Row>({
  list,
  more,
  failed = "The list could not be updated",
  ...table
}: Props<Row>) {
  return (
    <>
      {list.error !== null && <ErrorBanner what={failed} error={list.error} onRetry={list.retry} />}
      {(list.rows !== undefined || list.error === null) && <Table {...table} rows={list.rows} />}
      <LoadMore list={list} what={more} />
    </>
  );
}

/**
 * A toolbar button that shows the new rows of a live list. They wait, so that rows don't move while
 * the user reads.
 */
export const NewRows = ({ list }: { list: { newCount: number; showNew: () => void } }) =>
  list.newCount > 0 && (
    <Button kind="primary" onClick={list.showNew}>
      {list.newCount} new
    </Button>
  );
