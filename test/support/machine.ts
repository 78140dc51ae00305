import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Answer } from "../../dev/api-client";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "./forge";
import { Sshd } from "./sshd";

interface Detail {
  status: string;
  status_reason: string | null;
  error_code: string | null;
  bootstrap: {
    run: number;
    ssh_host_key: string | null;
    steps: { step: string; status: string; tries: number; error: string | null; log: string }[];
  };
}

/** How long a bootstrap waits for its agent, which needs some seconds on a busy machine. */
export const READY_S = 20;

/** The settings that pip needs on this machine. */
export function variablesOfPip(): Record<string, string> {
  const given = Object.entries(process.env).flatMap(([name, value = ""]) =>
    /^(PIP|SSL|HTTPS?)_[A-Z_]+$/.test(name) ? [[name, value] as const] : [],
  );
  // Don't compile the installed packages: that takes longer than everything else.
  return { ...Object.fromEntries(given), PIP_NO_COMPILE: "1" };
}

/**
 * A machine that Forge sets up as a worker over real SSH. The machine's setup script, git, venv,
 * pip and agent are real; its package manager is a stand-in. Also starts the Forge that sets up the
 * machine.
 */
export class Machine {
  readonly id = "over-ssh";
  readonly directory = mkdtempSync(join(tmpdir(), "forge-ssh-"));
  readonly keyFile = join(this.directory, "keys", "local", "id_ed25519");
  readonly repository = join(this.directory, "repository");
  readonly remoteDir = join(this.directory, "workers", this.id);
  /** Sessions of this SSH server find no container runtime. */
  readonly sshd = new Sshd(join(this.directory, "sshd"), { without: ["docker", "podman"] });
  forge!: Forge;

  /**
   * @param hasRepository whether the machine fetches the agent and the handlers from a repository;
   *   otherwise the server uploads them.
   */
  constructor(private readonly hasRepository = false) {}

  async start(): Promise<void> {
    mkdirSync(join(this.directory, "keys", "local"), { recursive: true });
    Sshd.makeKey(this.keyFile);
    if (this.hasRepository) this.makeRepository();
    await this.sshd.start();
    this.forge = await startForge(
      {
        FORGE_HEARTBEAT_TIMEOUT_S: "8",
        FORGE_SSH_KEY_DIR: join(this.directory, "keys"),
        FORGE_SSH_ALLOW: "127.0.0.1/32",
        ...(this.hasRepository && { FORGE_COMPUTE_REPOSITORY: `file://${this.repository}` }),
        FORGE_BOOTSTRAP_DIR: join(this.directory, "workers"),
        FORGE_BOOTSTRAP_READY_S: String(READY_S),
        HEARTBEAT_INTERVAL: "0.5",
        FORGE_BOOTSTRAP_ENV: JSON.stringify(this.environment()),
      },
      // Temporal is not shared: bootstrap workflow ids contain worker names, and other test files
      // use the same names.
      { own: ["temporal"] },
    );
  }

  async stop(): Promise<void> {
    await this.forge?.stop();
    this.stopAgent();
    await this.sshd.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /**
   * The environment of the machine's agent: pip's settings, and a secret that no log may contain.
   */
  private environment(): Record<string, string> {
    return {
      ...variablesOfPip(),
      HEARTBEAT_INTERVAL: "0.5",
      TEAM_TOKEN: "not-for-the-log",
    };
  }

  git(...args: string[]): void {
    const identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    execFileSync("git", [...identity, ...args], { cwd: this.repository, stdio: "ignore" });
  }

  private makeRepository(): void {
    for (const project of ["agent", "compute", "requirements"]) {
      cpSync(join(checkoutRoot(), project), join(this.repository, project), { recursive: true });
    }
    execFileSync("git", ["init", "-q", "-b", "main", this.repository]);
    this.git("add", ".");
    this.git("commit", "-q", "-m", "agent and handlers");
  }

  /** Installs a stand-in for the package manager, which only creates a `docker` command. */
  fakePackages(): void {
    const docker = join(this.directory, "sshd", "bin", "docker");
    this.sshd.fake("apt-get", `touch ${docker}\nchmod +x ${docker}`);
  }

  /**
   * Installs a stand-in for the agent's Python. It runs the given Python with the sources of this
   * checkout, and answers pip calls without installing anything.
   */
  installFakePython(python: string): void {
    const bin = join(this.remoteDir, "venv", "bin");
    mkdirSync(bin, { recursive: true });
    const packages = ["agent", "compute"]
      .map((name) => join(checkoutRoot(), name, "src"))
      .join(":");
    const script = [
      "#!/bin/sh",
      'if [ "$2" = pip ]; then echo "Requirement already satisfied: $*"; exit; fi',
      `PYTHONPATH=${packages} exec ${python} "$@"`,
    ];
    writeFileSync(join(bin, "python"), `${script.join("\n")}\n`, { mode: 0o755 });
  }

  authorizeKey(): void {
    this.sshd.authorize(readFileSync(`${this.keyFile}.pub`, "utf8"));
  }

  /** A registration of this machine over SSH (spec.md 2.4). */
  registration(more: object = {}): object {
    return {
      ssh_host: "127.0.0.1",
      ssh_port: this.sshd.port,
      ssh_user: this.sshd.user,
      gpu_count: 0,
      gpu_type: "cpu",
      provider: "lambda",
      metadata: { instance_id: "i-1", region: "eu" },
      worker_id: this.id,
      tags: ["ssh"],
      ...more,
    };
  }

  async register(more: object = {}): Promise<Answer> {
    return await this.forge.user.call("POST", "/api/workers/register", this.registration(more));
  }

  async bootstrapAgain(body: object = {}): Promise<Answer> {
    return await this.forge.user.call("POST", `/api/workers/${this.id}/bootstrap`, body);
  }

  async detail(): Promise<Detail> {
    return await this.forge.user.get(`/api/workers/${this.id}`);
  }

  async untilStatus(status: string): Promise<Detail> {
    return await waitFor(
      `it to be ${status}`,
      async () => {
        const worker = await this.detail();
        return worker.status === status && worker;
      },
      { timeoutMs: 90_000 },
    );
  }

  /** Waits for the end of a bootstrap, which must have failed at this step and at no other. */
  async untilFailed(step: string): Promise<Detail> {
    const failed = await waitFor(
      `the failure of ${step}`,
      async () => {
        const worker = await this.detail();
        return worker.status !== "bootstrapping" && worker;
      },
      { timeoutMs: 90_000 },
    );
    expect(failed).toMatchObject({ status: "error", error_code: "bootstrap_failed" });
    expect(failed.status_reason).toMatch(`bootstrap failed at step "${step}": `);
    const at = failed.bootstrap.steps.findIndex((each) => each.step === step);
    const statuses = failed.bootstrap.steps.map((each) => each.status);
    expect(statuses).toEqual(
      statuses.map((_, n) => (n < at ? "completed" : n === at ? "failed" : "pending")),
    );
    return failed;
  }

  get agentPid(): number | undefined {
    const file = join(this.remoteDir, "agent.pid");
    return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
  }

  stopAgent(): void {
    if (this.agentPid === undefined) return;
    try {
      process.kill(this.agentPid, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }

  /** Reads a file that the bootstrap left on the machine. */
  read(name: string): string {
    return readFileSync(join(this.remoteDir, name), "utf8");
  }

  breakProject(): () => void {
    const file = join(this.repository, "compute", "pyproject.toml");
    const good = readFileSync(file, "utf8");
    writeFileSync(file, "[broken");
    this.git("commit", "-q", "-a", "-m", "broken");
    return () => {
      writeFileSync(file, good);
      this.git("commit", "-q", "-a", "-m", "mended");
    };
  }
}
