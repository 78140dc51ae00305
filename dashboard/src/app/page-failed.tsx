import { type ErrorComponentProps, Link, useRouter } from "@tanstack/react-router";
import { buttonClass } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBanner } from "../ui/error-banner";
import { Page } from "../ui/page";

/** Shown when a page throws an error. If its code can't be loaded, `CodeMissing` is shown. */
export function PageFailed({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <Page title="Something went wrong">
      <ErrorBanner
        what="This page could not be shown"
        error={error}
        onRetry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty
        title="There is no page at this address."
        action={
          <Link to="/" className={buttonClass()}>
            Go to the first page
          </Link>
        }
      />
    </Page>
  );
}
