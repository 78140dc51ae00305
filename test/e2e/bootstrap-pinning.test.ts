import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";

let folder: string;
let repository: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "forge-pinning-"));
  repository = join(folder, "origin");
  copyFileSync(
    join(checkoutRoot(), "services/fleet/bootstrap/bootstrap.sh"),
    join(folder, "bootstrap.sh"),
  );
  writeFileSync(join(folder, "environment"), "");
  for (const project of ["agent", "compute"]) {
    write(
      `${project}/pyproject.toml`,
      '[build-system]\nrequires = ["none"]\nbuild-backend = "none"\n',
    );
  }
  git("init", "-q", "-b", "main");
  commit();
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, text: string): void {
  const file = join(repository, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
}

const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
    cwd: repository,
    encoding: "utf8",
  }).trim();

function commit(): string {
  git("add", ".");
  git("commit", "-q", "--allow-empty", "-m", "change");
  return git("rev-parse", "HEAD");
}

/** Runs a step of bootstrap.sh on this machine. @returns its exit code and output. */
function step(name: string, ref: string, path = process.env.PATH): Promise<[number, string]> {
  const settings = `REPOSITORY='file://${repository}'\nREPOSITORY_REF='${ref}'\n`;
  writeFileSync(join(folder, "settings"), settings);
  return new Promise((resolve) => {
    const options = { env: { ...process.env, PATH: path, PIP_NO_INDEX: "1" } };
    execFile("sh", [join(folder, "bootstrap.sh"), name], options, (error, stdout, stderr) =>
      resolve([Number(error?.code ?? 0), stdout + stderr]),
    );
  });
}

test("a machine gets the given full commit, although the branch has moved on", async () => {
  const pinned = git("rev-parse", "HEAD");
  const latest = commit();
  expect(await step("repository", pinned)).toEqual([0, `at ${pinned}\n`]);
  expect(await step("repository", "main")).toEqual([0, `at ${latest}\n`]);
});

test("a different commit from the server is refused", async () => {
  const pinned = git("rev-parse", "HEAD");
  const other = commit();
  // Simulate a git server, or a proxy, that answers with another commit.
  const fake = join(folder, "bin");
  mkdirSync(fake);
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  writeFileSync(
    join(fake, "git"),
    `#!/bin/sh\ncase " $* " in *" fetch "*) exec ${real} -C repository fetch -q --depth 1 origin main;; esac\nexec ${real} "$@"\n`,
    { mode: 0o755 },
  );
  const [code, output] = await step("repository", pinned, `${fake}:${process.env.PATH}`);
  expect([code, output]).toEqual([1, `the repository has ${other} for ${pinned}\n`]);
});

slowTest(
  "packages are installed from the repository's lock files, and a package with another hash is refused",
  async () => {
    for (const lock of ["runtime", "train"]) write(`requirements/${lock}.txt`, "");
    // A local package, because the test must not need the network.
    mkdirSync(join(folder, "wheels"));
    writeFileSync(join(folder, "wheels", "tiny-1.0-py3-none-any.whl"), "not what was locked");
    const hash = "0".repeat(64);
    write(
      "requirements/build.txt",
      `--find-links ${folder}/wheels\ntiny==1.0 --hash=sha256:${hash}\n`,
    );
    const pinned = commit();
    await step("repository", pinned);
    const [code, output] = await step("requirements", pinned);
    expect(code).not.toBe(0);
    expect(output).toContain("DO NOT MATCH THE HASHES");
    expect(() => readFileSync(join(folder, "venv", ".forge-installed"))).toThrow("ENOENT");
  },
);

import { slowTest } from "../support/slow";
