import type { Manifest } from "@forge/sdk";
import { Notice } from "../ui/error-banner";
import { formatMeasured } from "../ui/format";

/** Differences between the worker's report and Forge's own measurement. */
export function Contradictions({ manifest }: { manifest: Manifest }) {
  return manifest.contradictions.map(({ field, claimed, measured }) => (
    <Notice key={field} tone="warn">
      <strong>{field}:</strong> the worker said {shown(claimed)},{" "}
      {measured === null ? "which can't be so" : `Forge measured ${shown(measured)}`}.
    </Notice>
  ));
}

const shown = (value: unknown): string =>
  typeof value === "number" ? formatMeasured(value) : JSON.stringify(value);
