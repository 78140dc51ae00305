import type { Manifest } from "@forge/sdk";
import { formatNumber, plural } from "../ui/format";
import { numericScores } from "./scores";

/** A short description from the manifest that distinguishes an artifact in a list. */
export function aboutArtifact(manifest: Manifest): string {
  switch (manifest.artifact_type) {
    case "dataset":
      return joined(
        manifest.num_rows !== null && plural(manifest.num_rows, "row"),
        plural(manifest.schema.columns.length, "column"),
        manifest.quality.quality_tier && `quality ${manifest.quality.quality_tier}`,
      );
    case "checkpoint":
      return joined(
        manifest.base_model,
        manifest.parameter_count !== null &&
          `${compact.format(manifest.parameter_count)} parameters`,
        manifest.training_steps !== null && plural(manifest.training_steps, "step"),
      );
    case "eval":
      return joined(
        ...numericScores(manifest)
          .slice(0, 3)
          .map(([name, score]) => `${name} ${formatNumber(score, 3)}`),
      );
    case "deployment":
      return joined(manifest.status, manifest.checkpoint_id && `of ${manifest.checkpoint_id}`);
    default:
      return "";
  }
}

const joined = (...parts: (string | false | null | undefined)[]): string =>
  parts.filter(Boolean).join(", ");

const compact = new Intl.NumberFormat("en-US", {
  notation: "compact",
  maximumSignificantDigits: 3,
});
