import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { ManagedProcess } from "../../dev/stack/process";
import { freePorts, waitFor } from "../../dev/stack/wait";

interface SshdOptions {
  /** Commands of this machine that are hidden from sessions of the SSH server. */
  without?: string[];
  /** Where sessions begin; default: this user's home. */
  home?: string;
  /** Environment variables of sessions. */
  variables?: Record<string, string>;
}

/** A real OpenSSH server on a loopback port, for this user, with keys and commands of the test. */
export class Sshd {
  port = 0;
  readonly user = userInfo().username;
  private server: ManagedProcess | undefined;

  /** @param directory holds all of its files. */
  constructor(
    private readonly directory: string,
    private readonly options: SshdOptions = {},
  ) {
    const { without = [] } = options;
    for (const folder of ["bin", "tools"]) mkdirSync(join(directory, folder), { recursive: true });
    writeFileSync(this.authorizedKeys, "");
    for (const folder of (process.env.PATH ?? "").split(":").filter(existsSync)) {
      for (const command of readdirSync(folder)) {
        const link = join(directory, "tools", command);
        const isTaken = without.includes(command) || lstatSync(link, { throwIfNoEntry: false });
        if (!isTaken) symlinkSync(join(folder, command), link);
      }
    }
  }

  private get hostKeyFile(): string {
    return join(this.directory, "host_key");
  }

  private get authorizedKeys(): string {
    return join(this.directory, "authorized_keys");
  }

  /** Generates a key pair; `file` is the private half. */
  static makeKey(file: string): void {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", file]);
  }

  /** The fingerprint of the host key as ssh-keygen shows it: SHA256:… */
  get hostKey(): string {
    const shown = execFileSync("ssh-keygen", ["-l", "-f", `${this.hostKeyFile}.pub`]).toString();
    return shown.split(" ")[1] ?? "";
  }

  makeHostKey(): void {
    execFileSync("rm", ["-f", this.hostKeyFile, `${this.hostKeyFile}.pub`]);
    Sshd.makeKey(this.hostKeyFile);
  }

  authorize(publicKey: string): void {
    writeFileSync(this.authorizedKeys, publicKey);
  }

  /**
   * Installs a script that every session runs instead of the machine's command of this name.
   *
   * @param script undefined removes the script.
   */
  fake(command: string, script: string | undefined): void {
    const file = join(this.directory, "bin", command);
    execFileSync("rm", ["-f", file]);
    if (script === undefined) return;
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }

  async start(): Promise<void> {
    if (!existsSync(this.hostKeyFile)) this.makeHostKey();
    if (this.port === 0) [this.port = 0] = await freePorts(1);
    // If sshd runs as root, it needs this directory for privilege separation.
    if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
    const config = join(this.directory, "sshd_config");
    writeFileSync(
      config,
      [
        `Port ${this.port}`,
        "ListenAddress 127.0.0.1",
        `HostKey ${this.hostKeyFile}`,
        `PidFile ${join(this.directory, "sshd.pid")}`,
        `AuthorizedKeysFile ${this.authorizedKeys}`,
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin prohibit-password",
        `SetEnv ${this.variables()}`,
        ...this.homeSettings(),
      ].join("\n"),
    );
    const server = ManagedProcess.start({
      name: "sshd",
      program: sshdProgram(),
      args: ["-D", "-e", "-f", config],
      logFile: join(this.directory, "sshd.log"),
    });
    this.server = server;
    await waitFor("sshd", () => answers(this.port), { process: server });
  }

  private variables(): string {
    const PATH = `${join(this.directory, "bin")}:${join(this.directory, "tools")}`;
    const all = Object.entries({ ...this.options.variables, PATH });
    return all.map(([name, value]) => `"${name}=${value}"`).join(" ");
  }

  /** Makes sessions begin in `home`, by a forced command: SetEnv can't change the folder. */
  private homeSettings(): string[] {
    const { home } = this.options;
    if (home === undefined) return [];
    return [`ForceCommand cd ${home} && HOME=${home} exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"`];
  }

  async stop(): Promise<void> {
    await this.server?.stop();
  }
}

/**
 * Returns the path of sshd. If sshd is missing, installs it, but only as root on Debian and Ubuntu.
 * Starts no service.
 */
function sshdProgram(): string {
  const found = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"].find(existsSync);
  if (found) return found;
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    process.stderr.write("Installing openssh-server for the test …\n");
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
    execFileSync("apt-get", ["update", "-q"], { env, stdio: "ignore" });
    execFileSync("apt-get", ["install", "-y", "-q", "openssh-server"], { env, stdio: "ignore" });
    return "/usr/sbin/sshd";
  }
  throw new Error("this test needs an OpenSSH server: install openssh-server");
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    setTimeout(() => socket.destroy(), 1_000).unref();
  }).then((answered) => answered === true);
