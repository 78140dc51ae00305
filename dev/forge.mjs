#!/usr/bin/env node
// The one entry of every npm script. Plain JavaScript without dependencies, because on a fresh clone
// it is what installs them: it brings node_modules and dist up to date, then runs the command.
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
const { server, tools } = JSON.parse(readFileSync(join(root, "dev/rooms.json"), "utf8"));
const rooms = [...server, ...tools];
const [command = "help", ...args] = process.argv.slice(2);

const say = (line) => process.stderr.write(`${line}\n`);

/** Runs a program with our terminal; ends this process when it fails. */
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

/** Does `work` unless `marker` says it was done for the same inputs. */
function once(marker, digest, work) {
  const path = join(root, marker);
  if (existsSync(path) && readFileSync(path, "utf8") === digest) return;
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

/** As in dev/stack/paths.ts, which is not built yet. */
const cacheDir = () =>
  process.env.FORGE_CACHE_DIR ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "forge");

/** By the system's own program: 30,000 files take it 3 s, and Node's cpSync many times that. */
const copyTree = (from, to) => run("cp", ["-a", from, to]);

/** For other checkouts on this machine, and in place of what older ones kept. */
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

/** What machines that are set up over SSH need of us: the packages, and what pip installs for them. */
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
  const settings = ["package-lock.json", "tsconfig.json", "dev/forge.mjs", "dev/rooms.json"];
  const inputs = [...settings, ...sourcesBelow(rooms)];
  once("dist/.built", digestOf(inputs), () => {
    say("Building …");
    // What a deleted source left behind must not linger.
    for (const room of rooms) rmSync(join(root, "dist", room), { recursive: true, force: true });
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
  // The marker is read by the server, too: it names what it brings along (services/fleet/bootstrap/machine.ts).
  once("dist/services/fleet/bootstrap/compute.revision", digestOf(packed), () =>
    run("tar", ["-czf", "dist/services/fleet/bootstrap/compute.tgz", ...packed]),
  );
}

/** The dashboard, which the server serves under /ui/. It takes the SDK's sources, and forms from the API's document. */
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

/** A package of its own, for others to install. */
function buildSdk() {
  const sdk = "sdk/typescript";
  const inputs = [`${sdk}/package.json`, `${sdk}/tsconfig.json`, ...sourcesBelow([`${sdk}/src`])];
  once(`${sdk}/dist/.built`, digestOf(["package-lock.json", ...inputs]), () => {
    say("Building the SDK for TypeScript …");
    rmSync(join(root, sdk, "dist"), { recursive: true, force: true });
    compile(sdk);
  });
}

/** Runs the command to its end. It gets the signals that we get, and decides what they mean. */
function runBuilt(script) {
  const program = join(root, "dist/dev", script);
  const child = spawn(process.execPath, ["--enable-source-maps", program, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  process.on("SIGINT", () => {}); // a terminal sends it to both
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
