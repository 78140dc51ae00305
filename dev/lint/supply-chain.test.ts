import { isAllowed, licenceProblems, npmPackages, pythonPackages } from "../supply-chain/licences";
import { LOCK_NAMES, parseLock, readLock, withoutTorch } from "../supply-chain/python-locks";
import { lockProblems } from "./supply-chain";

test("the locks match the requirements", () => {
  for (const name of LOCK_NAMES) expect(lockProblems(name, readLock(name))).toEqual([]);
});

test("a stale lock, one without a hash and one with a URL are refused", () => {
  const text = readLock("runtime");
  expect(lockProblems("runtime", text.replace(/inputs \w+/, "inputs 0"))).toEqual([
    expect.stringContaining("is older than agent/requirements-runtime.txt"),
  ]);
  expect(lockProblems("runtime", `${text}another==1.0\n`)).toEqual([
    "requirements/runtime.txt: another has no version or no hash",
  ]);
  expect(lockProblems("runtime", `${text}# http://example.com\n`)).toHaveLength(1);
});

test("withoutTorch removes only PyTorch with CUDA from a lock", () => {
  const names = (text: string): string[] => parseLock(text).map(({ name }) => name);
  const all = names(readLock("train"));
  const kept = names(withoutTorch(readLock("train")));
  expect(kept).toEqual(expect.arrayContaining(["transformers", "pyarrow", "filelock", "sympy"]));
  const left = all.filter((name) => !kept.includes(name));
  expect(left).toEqual(expect.arrayContaining(["torch", "triton", "cuda-bindings"]));
  for (const name of left) expect(name).toMatch(/^(torch|triton|(nvidia|cuda)-.+)$/);
  expect(names(withoutTorch(readLock("runtime")))).toContain("nvidia-ml-py");
});

test.each([
  ["MIT", true],
  ["(MIT OR GPL-3.0-only)", true],
  ["Apache-2.0 AND MIT", true],
  ["GPL-3.0-only", false],
  ["MIT AND AGPL-3.0-only", false],
  ["UNKNOWN", false],
])("%s is allowed: %s", (expression, allowed) => {
  expect(isAllowed(expression)).toBe(allowed);
});

test("reports packages with another licence or none, except development packages", () => {
  const npm = npmPackages(
    JSON.stringify({
      packages: {
        "": { version: "1" },
        "node_modules/a": { version: "1", license: "AGPL-3.0-only" },
        "node_modules/b/node_modules/@c/d": { version: "2" },
        "node_modules/tool": { version: "3", license: "GPL-3.0-only", dev: true },
      },
    }),
  );
  const proprietary = { version: "1", licence: "LicenseRef-NVIDIA-Proprietary" };
  const python = ["other", "nvidia-cudnn-cu13"].map((name) => ({ name, ...proprietary }));
  expect(licenceProblems(npm, python)).toEqual([
    "npm a 1: AGPL-3.0-only",
    "npm @c/d 2: its licence is not listed",
    "Python other 1: LicenseRef-NVIDIA-Proprietary",
  ]);
  expect(licenceProblems([], pythonPackages())).toEqual([]);
});
