import { execFile } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { killGroup, ManagedProcess } from "../../dev/stack/process";
import { waitFor } from "../../dev/stack/wait";

const PROGRAMS = ["unshare", "nsenter", "setpriv", "python3", "git"];

/**
 * Mounts overlays, so that accounts, units and installed files are written only there. They vanish
 * with the last process of the mount namespace.
 */
const OVERLAYS = `
mount -t tmpfs tmpfs /mnt
for folder in etc opt; do
  mkdir -p /mnt/$folder/upper /mnt/$folder/work
  mount -t overlay -o "lowerdir=/$folder,upperdir=/mnt/$folder/upper,workdir=/mnt/$folder/work" \\
    overlay /$folder
done
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
touch "$1"
exec sleep infinity`;

/**
 * Simulates a machine that runs systemd. Commands run on this machine, but in a mount namespace of
 * the test and with a stand-in for systemctl. Accounts and units that they create don't exist
 * outside the namespace.
 */
export class SystemdMachine {
  static readonly isPossible =
    process.platform === "linux" &&
    process.getuid?.() === 0 &&
    PROGRAMS.every((program) => existsSync(join("/usr/bin", program)));

  readonly directory = mkdtempSync(join(tmpdir(), "forge-systemd-"));
  /** Root's home in the namespace. */
  readonly home = join(this.directory, "home");
  private readonly bin = join(this.directory, "bin");
  private holder: ManagedProcess | undefined;

  async start(): Promise<void> {
    chmodSync(this.directory, 0o755);
    mkdirSync(this.home, { mode: 0o700 });
    mkdirSync(this.bin);
    const systemctl = join(this.bin, "systemctl");
    copyFileSync(join(checkoutRoot(), "test/support/systemctl.sh"), systemctl);
    chmodSync(systemctl, 0o755);
    const ready = join(this.directory, "ready");
    const holder = ManagedProcess.start({
      name: "mount namespace",
      program: "unshare",
      args: ["--mount", "sh", "-ec", OVERLAYS, "-", ready],
      logFile: join(this.directory, "mounts.log"),
    });
    this.holder = holder;
    await waitFor("the overlays", () => existsSync(ready), { process: holder });
  }

  async stop(): Promise<void> {
    for (const name of existsSync(this.bin) ? readdirSync(this.bin) : []) {
      if (name.endsWith(".pid")) killGroup(Number(readFileSync(join(this.bin, name), "utf8")));
    }
    await this.holder?.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Runs a shell command in the namespace. @returns its exit code and output. */
  run(command: string, stdin = ""): Promise<[number, string]> {
    const args = [
      `--mount=/proc/${this.holder?.pid}/ns/mnt`,
      "env",
      "-i",
      `HOME=${this.home}`,
      `PATH=${this.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      ...["sh", "-c", command],
    ];
    return new Promise((resolve) => {
      const child = execFile("nsenter", args, (error, stdout, stderr) =>
        resolve([Number(error?.code ?? 0), stdout + stderr]),
      );
      // A command that reads no input may end before its input is written.
      child.stdin?.on("error", () => undefined);
      child.stdin?.end(stdin);
    });
  }

  /** The process that the stand-in started last for a unit. */
  pidOf(unit: string): number {
    return Number(readFileSync(join(this.bin, `${unit}.pid`), "utf8"));
  }

  /** The service's output. */
  logOf(unit: string): string {
    return readFileSync(join(this.bin, `${unit}.log`), "utf8");
  }
}
