import { type ObjectStore, StoreUnavailable } from "../../platform/store/object-store";
import { measureFiles } from "./output-files";

test("a listed file that disappears is not left out", async () => {
  const store = {
    list: async () => [{ path: "scored.csv", sizeBytes: 6 }],
    measure: async () => undefined,
  } as unknown as ObjectStore;
  const measuring = measureFiles(store, new Map(), "a/", new AbortController().signal);
  await expect(measuring).rejects.toBeInstanceOf(StoreUnavailable);
});
