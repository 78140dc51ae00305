import { SERVER_FOLDERS } from "../source-folders";

/** Path prefixes of the files of each jest suite. */
export const IN_JEST: Record<string, string[]> = {
  unit: [...SERVER_FOLDERS, "dev", "sdk/typescript", "dashboard"].map((folder) => `${folder}/`),
  e2e: ["test/e2e/"],
  contract: ["test/contract/"],
  faults: ["test/faults/"],
  browser: ["test/browser/"],
};

/**
 * `npm run test:slow`: slow tests, and the long forms of tests whose short form is in `npm test`.
 */
export const SLOW = [
  "test/slow/",
  "test/faults/awaited-attempts",
  "test/faults/handlers",
  "test/faults/lost-workflows",
  "test/faults/measuring",
  "test/faults/temporal-frozen",
  "test/faults/deployment-workflows",
  "test/faults/pipelines",
  "test/faults/billing",
  "test/faults/sdk",
  "test/faults/fleet",
  "test/faults/workers",
  "test/faults/late-pipelines",
  "test/faults/racing-registrations",
  "test/faults/idempotency",
  "test/faults/server-crash",
  "test/faults/outages",
  "test/faults/artifact-store",
  "test/faults/reconciler",
  "test/faults/stuck-writes",
  "test/faults/unbilled",
  "test/faults/late-writers",
  "test/faults/late-stops",
  "test/faults/late-completion",
  "test/faults/restored-pipelines",
  "test/faults/deployments",
  "test/faults/clock-steps",
  "test/e2e/large-files",
  "test/e2e/hard-cap",
  "test/e2e/forge-command",
  "test/e2e/sdk-typescript",
  "test/e2e/accrual",
  "test/e2e/hostile-names",
  "test/e2e/matching",
  "test/e2e/provisioning",
  "test/e2e/next-job",
  "test/e2e/only-job",
  "test/e2e/start-new-job",
  "test/e2e/stores",
  "test/e2e/upgrade",
  "test/e2e/compute",
  "test/e2e/bootstrap",
  "test/e2e/deployments",
  "test/e2e/sdk-releases",
  "test/e2e/preview",
  "test/e2e/large-tables",
  "test/browser/models",
  "test/browser/pages",
  "test/browser/pipelines",
  "test/browser/deployments",
  "core/artifacts/manifest",
  "core/fleet/matching",
  "platform/tables/hostile-files",
];

/**
 * Path prefixes of the suite `doubled`: each file has two API processes and two Temporal workers.
 */
export const DOUBLED = ["test/faults/", "test/slow/clock"];

/**
 * Tests that compare times, at the end of `npm run test:slow`. Nothing else runs at the same time.
 */
export const MEASURED = ["test/measured/"];
