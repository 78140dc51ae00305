#!/usr/bin/env node
// Entry point of every npm script: brings node_modules and dist up to date, then runs the command.
// Plain JavaScript without dependencies, because it installs the dependencies on a fresh clone.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { server, tools } = JSON.parse(readFileSync(join(root, "dev/source-folders.json"), "utf8"));
const folders = [...server, ...tools];
const [command = "help", ...args] = process.argv.slice(2);

const say = (line) => process.stderr.write(`${line}\n`);

/** Runs a program with the inherited terminal. Exits if it fails. */
function run(program, programArgs, env = {}) {
  const { status } = spawnSync(program, programArgs, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (status !== 0) process.exit(status ?? 1);
}

function digestOf(files) {
  const hash = createHash("sha256");
  for (const file of files)
    hash
      .update(file)
      .update("\0")
      .update(readFileSync(join(root, file)));
  return hash.digest("hex");
}

/** Does `work` unless `marker` records that it was done for the same inputs. */
function once(marker, digest, work) {
  const path = join(root, marker);
  if (existsSync(path) && readFileSync(path, "utf8") === digest) return;
  // Remove the old marker before the work. Otherwise, if the work failed and the inputs were then
  // changed back, the old marker would hide the unfinished work.
  rmSync(path, { force: true });
  work();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, digest);
}

function install() {
  const digest = digestOf(["package-lock.json", ".npmrc"]);
  once("node_modules/.forge-installed", digest, () => {
    const kept = join(cacheDir(), "node_modules", `${digest.slice(0, 16)}-${process.version}`);
    if (existsSync(kept)) {
      say("Installing Node packages from the cache …");
      rmSync(join(root, "node_modules"), { recursive: true, force: true });
      copyTree(kept, join(root, "node_modules"));
      return;
    }
    say("Installing Node packages (about a minute the first time) …");
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    keep(join(root, "node_modules"), kept);
  });
}

/** Same as `cacheDir` in dev/stack/paths.ts, which is not built when this script starts. */
const cacheDir = () =>
  process.env.FORGE_CACHE_DIR ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "forge");

/** Uses `cp`, which copies 30,000 files in 3 s. Node's cpSync takes many times longer. */
const copyTree = (from, to) => run("cp", ["-a", from, to]);

/** Copies node_modules to the cache, for other checkouts. Removes older copies from the cache. */
function keep(tree, kept) {
  const partial = `${kept}.${process.pid}`;
  try {
    rmSync(dirname(kept), { recursive: true, force: true });
    mkdirSync(dirname(kept), { recursive: true });
    copyTree(tree, partial);
    renameSync(partial, kept);
  } catch (error) {
    say(`Node packages are not kept for other checkouts: ${error.message}`);
  }
}

const filesBelow = (folders, named) =>
  folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length + 1))
        .filter((path) => named.test(path)),
    )
    .sort();

const sourcesBelow = (folders) => filesBelow(folders, /\.(ts|sql|sh|html|css|js)$/);

/** Files for machines set up over SSH: our packages, and the lock files of their dependencies. */
const packages = ["agent", "compute"];
const packedFiles = () =>
  [
    ...packages.map((name) => `${name}/pyproject.toml`),
    ...filesBelow(
      packages.map((name) => `${name}/src`),
      /\.py$|\/py\.typed$/,
    ),
    ...["build", "runtime", "train"].map((lock) => `requirements/${lock}.txt`),
  ].sort();

const compile = (project) =>
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", project]);

function build() {
  const settings = [
    "package-lock.json",
    "tsconfig.json",
    "dev/forge.mjs",
    "dev/source-folders.json",
  ];
  const inputs = [...settings, ...sourcesBelow(folders)];
  once("dist/.built", digestOf(inputs), () => {
    say("Building …");
    // Remove the output of deleted sources.
    for (const folder of folders)
      rmSync(join(root, "dist", folder), { recursive: true, force: true });
    rmSync(join(root, "dist/.tsbuildinfo"), { force: true });
    compile("tsconfig.json");
    for (const files of [
      "platform/postgres/migrations",
      "services/fleet/bootstrap/bootstrap.sh",
      "bin/api-reference",
    ]) {
      cpSync(join(root, files), join(root, "dist", files), { recursive: true });
    }
    run(process.execPath, [join(root, "dist/dev/bundle-workflows.js")]);
  });
  const packed = packedFiles();
  // The server reads this marker as the revision of the archive
  // (services/fleet/bootstrap/machine-session.ts).
  once("dist/services/fleet/bootstrap/compute.revision", digestOf(packed), () =>
    run("tar", ["-czf", "dist/services/fleet/bootstrap/compute.tgz", ...packed]),
  );
}

/**
 * Builds the dashboard, which uses the SDK's sources and generates forms from the OpenAPI document.
 */
function buildDashboard() {
  const inputs = [
    "package-lock.json",
    "docs/openapi.json",
    ...filesBelow(["dashboard", "sdk/typescript/src"], /./),
  ];
  once("dist/dashboard/.built", digestOf(inputs), () => {
    say("Building the dashboard …");
    run(process.execPath, [
      join(root, "node_modules/vite/bin/vite.js"),
      "build",
      "--logLevel=warn",
      "--config=dashboard/vite.config.mts",
    ]);
  });
}

/** Builds the SDK as a separate package. */
function buildSdk() {
  const sdk = "sdk/typescript";
  const inputs = [`${sdk}/package.json`, `${sdk}/tsconfig.json`, ...sourcesBelow([`${sdk}/src`])];
  once(`${sdk}/dist/.built`, digestOf(["package-lock.json", ...inputs]), () => {
    say("Building the SDK for TypeScript …");
    rmSync(join(root, sdk, "dist"), { recursive: true, force: true });
    compile(sdk);
  });
}

/** Runs a built command and exits with its code. Forwards SIGTERM to it. */
function runBuilt(script) {
  const program = join(root, "dist/dev", script);
  const child = spawn(process.execPath, ["--enable-source-maps", program, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  process.on("SIGINT", () => {}); // Ctrl-C reaches the child too; wait for its end
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.once("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}

const commands = {
  build: buildSdk,
  start: () => runBuilt("start.js"),
  demo: () => runBuilt("demo.js"),
  bench: () => runBuilt("bench/outside/main.js"),
  "bench-parts": () => {
    buildSdk();
    runBuilt("bench/bench.js");
  },
  dashboard: () =>
    run(process.execPath, [
      join(root, "node_modules/vite/bin/vite.js"),
      "--config=dashboard/vite.config.mts",
    ]),
  openapi: () => runBuilt("openapi/openapi.js"),
  simulate: () => runBuilt("simulate.js"),
  audit: () => runBuilt("supply-chain/audit.js"),
  sbom: () => runBuilt("supply-chain/sbom.js"),
  "lock-python": () => runBuilt("supply-chain/lock-python.js"),
  "check-invariants": () => runBuilt("check-invariants.js"),
  test: () => {
    buildSdk();
    runBuilt("test/main.js");
  },
};

if (!(command in commands)) {
  say(`usage: node dev/forge.mjs ${Object.keys(commands).join(" | ")}`);
  process.exit(2);
}
install();
build();
buildDashboard();
commands[command]();
