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
  /** What there is more of, e.g. "older jobs". */
  more: string;
  /** What an error is called. */
  failed?: string;
}

/** A table of a list that comes page by page. An error stands above the rows that are there already. */
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

/** For a toolbar: shows the rows of a live list that wait, so that rows don't move under the reader. */
export const NewRows = ({ list }: { list: { newCount: number; showNew: () => void } }) =>
  list.newCount > 0 && (
    <Button kind="primary" onClick={list.showNew}>
      {list.newCount} new
    </Button>
  );
