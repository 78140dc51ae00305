import type { Manifest } from "@forge/sdk";

/** The scores of an evaluation, or the quality of a dataset, as in its manifest. */
export function scoresOf(manifest: Manifest): object {
  if (manifest.artifact_type === "eval") return manifest.scores;
  return manifest.artifact_type === "dataset" ? manifest.quality : {};
}

export const numericScores = (manifest: Manifest): [string, number][] =>
  Object.entries(scoresOf(manifest)).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number",
  );
