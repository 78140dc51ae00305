import type { Artifact, Manifest } from "@forge/sdk";
import { Bars } from "../ui/bars";
import { Notice } from "../ui/error-banner";
import { ABSENT, formatBytes, formatMeasured, formatNumber } from "../ui/format";
import { Json } from "../ui/json";
import { type Entry, KeyValue } from "../ui/key-value";
import { Money } from "../ui/money";
import { Section, Stack } from "../ui/page";
import { Time } from "../ui/time";
import styles from "./artifact-facts.module.css";
import { numericScores } from "./scores";
import { kindName } from "./search";

export function ArtifactFacts({ artifact }: { artifact: Artifact }) {
  const { manifest } = artifact;
  const scores = numericScores(manifest);
  const metrics = Object.entries(manifest.metrics);
  return (
    <Stack gap={16}>
      {manifest.contradictions.map(({ field, claimed, measured }) => (
        <Notice key={field} tone="warn">
          <strong>{field}:</strong> the worker said {shown(claimed)},{" "}
          {measured === null ? "which can't be so" : `Forge measured ${shown(measured)}`}.
        </Notice>
      ))}
      {manifest.notes && <Notice tone="neutral">{manifest.notes}</Notice>}
      <div className={styles.columns}>
        <Section title="Facts">
          <KeyValue
            entries={[
              { name: "Kind", value: kindName(artifact.kind) },
              { name: "Size", value: formatBytes(artifact.size_bytes) },
              { name: "Created", value: <Time at={artifact.created_at} /> },
              ...factsOf(manifest),
              {
                name: "Cost of its job",
                value: <Money usd={manifest.cost_estimate_usd} digits={6} />,
              },
              { name: "Code", value: <code>{manifest.git_commit ?? ABSENT}</code> },
              { name: "Location", value: <code>{artifact.uri}</code> },
            ]}
          />
        </Section>
        {scores.length > 0 && (
          <Section title="Scores">
            <Bars
              label="Scores"
              bars={scores.map(([label, value]) => ({
                label,
                value,
                text: formatNumber(value, 4),
              }))}
            />
          </Section>
        )}
        {metrics.length > 0 && (
          <Section title="Metrics">
            <KeyValue
              entries={metrics.map(([name, value]) => ({ name, value: formatMeasured(value) }))}
            />
          </Section>
        )}
        <Section title="Parameters of its job">
          <Json value={manifest.job_params} label="the parameters" />
        </Section>
      </div>
    </Stack>
  );
}

const shown = (value: unknown): string =>
  typeof value === "number" ? formatMeasured(value) : JSON.stringify(value);

/** Facts that are specific to the manifest's artifact type. */
function factsOf(manifest: Manifest): Entry[] {
  switch (manifest.artifact_type) {
    case "dataset":
      return [
        { name: "Rows", value: formatNumber(manifest.num_rows) },
        {
          name: "Columns",
          value: manifest.schema.columns.map(({ name, dtype }) => `${name} ${dtype}`).join(", "),
        },
      ];
    case "checkpoint":
      return [
        { name: "Base model", value: manifest.base_model ?? ABSENT },
        { name: "Architecture", value: manifest.architecture ?? ABSENT },
        { name: "Parameters", value: formatNumber(manifest.parameter_count) },
        { name: "Steps", value: formatNumber(manifest.training_steps) },
        { name: "Epochs", value: formatNumber(manifest.training_epochs) },
        { name: "Optimizer", value: manifest.optimizer ?? ABSENT },
        { name: "Learning rate", value: manifest.lr ?? ABSENT },
      ];
    case "eval":
      return [
        { name: "Checkpoint", value: manifest.checkpoint_id ?? ABSENT },
        { name: "Datasets", value: manifest.datasets.join(", ") || ABSENT },
      ];
    case "deployment":
      return [
        { name: "Status", value: manifest.status },
        { name: "Checkpoint", value: manifest.checkpoint_id ?? ABSENT },
        {
          name: "Replicas",
          value: `${manifest.scaling.min_replicas} to ${manifest.scaling.max_replicas}`,
        },
      ];
    default:
      return [];
  }
}
