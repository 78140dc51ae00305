import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useForge } from "../../api/context";
import { given } from "../../app/search-params";
import { Empty } from "../../ui/empty";
import { ErrorBanner } from "../../ui/error-banner";
import { Page } from "../../ui/page";
import { SkeletonLines } from "../../ui/skeleton";
import type { CompareSearch } from "../search";
import { Choice } from "./choice";
import styles from "./compare-page.module.css";
import { Comparison } from "./comparison";

const route = getRouteApi("/artifacts/compare");

export function ComparePage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const a = useSide(search.a);
  const b = useSide(search.b);
  const change = (next: CompareSearch): void =>
    void navigate({
      to: "/artifacts/compare",
      search: given({ ...search, ...next }),
      replace: true,
    });
  return (
    <Page title="Compare artifacts" above={<Link to="/artifacts">Artifacts</Link>}>
      <div className={styles.choices}>
        {/* The key resets the field's text when the id in the URL changes. */}
        <Choice
          key={`a ${search.a}`}
          label="First artifact"
          id={search.a}
          onChoose={(id) => change({ a: id })}
        />
        <Choice
          key={`b ${search.b}`}
          label="Second artifact"
          id={search.b}
          onChoose={(id) => change({ b: id })}
        />
      </div>
      {[a, b].map(
        ({ error, refetch }, at) =>
          error && (
            <ErrorBanner
              key={at === 0 ? "a" : "b"}
              what={`The ${at === 0 ? "first" : "second"} artifact could not be loaded`}
              error={error}
              onRetry={refetch}
            />
          ),
      )}
      {a.data && b.data ? (
        <Comparison
          a={a.data}
          b={b.data}
          showsEqual={search.equal === "shown"}
          onShowEqual={(isShown) => change({ equal: isShown ? "shown" : undefined })}
        />
      ) : a.isLoading || b.isLoading ? (
        <SkeletonLines count={8} />
      ) : (
        !a.error &&
        !b.error && (
          <Empty title="Choose two artifacts: their parameters, metrics and files are shown side by side." />
        )
      )}
    </Page>
  );
}

function useSide(id: string | undefined) {
  const forge = useForge();
  return useQuery({
    queryKey: ["artifacts", "one", id],
    queryFn: ({ signal }) => forge.artifacts.get(id ?? "", { signal }),
    enabled: id !== undefined,
  });
}
