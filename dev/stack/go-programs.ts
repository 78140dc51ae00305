import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

/** Programs of one Go module, which is pinned by dev/<name>/go.mod. */
export class GoPrograms {
  /** Without the leading "v". */
  readonly version: string;
  private readonly source: string;
  private readonly directory: string;

  /** @param packages paths of Go packages. A program's name is the last part of its path. */
  constructor(
    name: string,
    private readonly packages: string[],
  ) {
    this.source = join(checkoutRoot(), "dev", name);
    const goMod = readFileSync(join(this.source, "go.mod"), "utf8");
    const version = /^require \S+ v(\S+)$/m.exec(goMod)?.[1];
    if (version === undefined) throw new Error(`dev/${name}/go.mod does not require one module`);
    this.version = version;
    this.directory = join(cacheDir(), `${name}-${version}`);
  }

  /** Whether the programs are built, or can be built. */
  get available(): boolean {
    return this.built || spawnSync("go", ["version"]).status === 0;
  }

  /**
   * Returns the directory of the programs. Builds them once with Go into the cache; Go checks every
   * module against dev/<name>/go.sum.
   *
   * @param announcement is printed before a build.
   * @param ldflags options of Go's linker.
   */
  async build(announcement: string, say: Say, ldflags = ""): Promise<string> {
    if (this.built) return this.directory;
    say(announcement);
    const partial = join(this.directory, `.build-${process.pid}`);
    mkdirSync(partial, { recursive: true });
    try {
      await promisify(execFile)(
        "go",
        ["build", "-trimpath", "-ldflags", ldflags, "-o", `${partial}/`, ...this.packages],
        { cwd: this.source },
      );
      for (const program of this.programs) {
        renameSync(join(partial, program), join(this.directory, program));
      }
    } finally {
      rmSync(partial, { recursive: true, force: true });
    }
    return this.directory;
  }

  private get programs(): string[] {
    return this.packages.map((path) => basename(path));
  }

  private get built(): boolean {
    return this.programs.every((program) => existsSync(join(this.directory, program)));
  }
}
