import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { SystemdMachine } from "../support/systemd-machine";

const UNIT = "forge-agent-w.service";
const INSTALLED = "/opt/forge-worker/w";
const machine = new SystemdMachine();
const repository = join(machine.directory, "repository");
/** The default directory of a bootstrap: in the home of the SSH user. */
const inHome = join(machine.home, ".forge-worker", "w");
/** A directory chosen by the operator. */
const elsewhere = join(machine.directory, "data", "forge", "w");

/** Writes the files that the server would upload over SSH. */
function upload(directory: string): void {
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  const script = join(checkoutRoot(), "services/fleet/bootstrap/bootstrap.sh");
  copyFileSync(script, join(directory, "bootstrap.sh"));
  const settings = { WORKER_ID: "w", GPU_COUNT: "0", REPOSITORY_REF: "main" };
  writeFileSync(
    join(directory, "settings"),
    variables({ ...settings, REPOSITORY: `file://${repository}` }),
  );
  const ofPip = Object.entries(process.env).filter(([name]) => /^(PIP|SSL|HTTPS?)_/.test(name));
  const environment = {
    ...(Object.fromEntries(ofPip) as Record<string, string>),
    PIP_NO_COMPILE: "1",
    SERVICE_API_URL: "http://127.0.0.1:9",
    WORKER_ID: "w",
  };
  writeFileSync(join(directory, "environment"), variables(environment));
}

const variables = (values: Record<string, string>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}="${value}"\n`)
    .join("");

async function step(directory: string, name: string): Promise<string> {
  const [code, output] = await machine.run(`sh ${directory}/bootstrap.sh ${name}`, "the-key\n");
  if (code !== 0) throw new Error(`${name}: exit code ${code}\n${output}\n${machineLog()}`);
  return output;
}

function machineLog(): string {
  try {
    return machine.logOf(UNIT);
  } catch {
    return "";
  }
}

/** Asserts that a shell command succeeds on the machine. */
async function holds(command: string): Promise<void> {
  expect([command, ...(await machine.run(command))]).toEqual([command, 0, expect.any(String)]);
}

/** Returns the /proc status of the agent's process, which has its user ids and groups. */
async function agentStatus(): Promise<string> {
  await waitFor("the agent to start", () => /cannot register yet/.test(machine.logOf(UNIT)));
  return readFileSync(`/proc/${machine.pidOf(UNIT)}/status`, "utf8");
}

(SystemdMachine.isPossible ? describe : describe.skip)("a machine with systemd", () => {
  beforeAll(async () => {
    await machine.start();
    cpSync(join(checkoutRoot(), "agent"), join(repository, "agent"), { recursive: true });
    mkdirSync(join(repository, "compute"));
    writeFileSync(
      join(repository, "compute", "pyproject.toml"),
      '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n' +
        '[project]\nname = "forge-compute"\nversion = "0"\n' +
        "[tool.hatch.build.targets.wheel]\nbypass-selection = true\n",
    );
    execFileSync("git", ["init", "-q", "-b", "main", repository]);
    const identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    execFileSync("git", ["add", "."], { cwd: repository });
    execFileSync("git", [...identity, "commit", "-q", "-m", "agent"], { cwd: repository });
  });

  afterAll(async () => {
    await machine.stop();
  });

  test("a user without root access gets a plain process, as on a machine without systemd", async () => {
    const directory = join(machine.directory, "plain", "w");
    upload(directory);
    await machine.run(`chown -R nobody ${machine.directory}/plain`);
    const [code, output] = await machine.run(
      `setpriv --reuid nobody --clear-groups sh ${directory}/bootstrap.sh script`,
    );
    expect([code, output]).toEqual([0, expect.stringContaining("agent: a process of nobody")]);
  });

  test("the agent runs as the service of forge-agent install, under its own account", async () => {
    upload(inHome);
    // Prepare the state after a bootstrap of an earlier release: the agent runs as root, with its
    // state in root's home.
    const state = join(inHome, "state", "w", "slot-0");
    mkdirSync(state, { recursive: true, mode: 0o700 });
    writeFileSync(join(state, "kept"), "");
    mkdirSync(join(inHome, "venv"));
    await holds("groupadd --force render");
    const former = `[Service]\\nUser=root\\nExecStart=/usr/bin/sleep 600\\n`;
    await holds(
      `printf '${former}' >/etc/systemd/system/${UNIT} && systemctl enable --now ${UNIT}`,
    );
    const formerPid = machine.pidOf(UNIT);

    expect(await step(inHome, "script")).toContain(
      `agent: a service of the account forge-agent, in ${INSTALLED}\n`,
    );
    await step(inHome, "repository");
    await step(inHome, "requirements");
    expect(await step(inHome, "agent")).toContain(`the agent runs as ${UNIT}\n`);

    const unit = (await machine.run(`cat /etc/systemd/system/${UNIT}`))[1];
    const install =
      `${INSTALLED}/venv/bin/python -m forge_agent install --dry-run --name forge-agent-w ` +
      `--env-file ${inHome}/agent.env --state-dir ${INSTALLED}/state`;
    expect(await machine.run(install)).toEqual([0, unit]);
    for (const line of ["User=forge-agent", "ProtectSystem=strict", "CapabilityBoundingSet="]) {
      expect(unit.split("\n")).toContain(line);
    }

    const [, id] = await machine.run("id -u forge-agent");
    const status = await agentStatus();
    expect(Number(id)).toBeGreaterThan(0);
    expect(status).toMatch(new RegExp(`^Uid:(\\s${id.trim()}){4}$`, "m"));
    const groups = await machine.run("getent group video render | cut -d: -f3 | sort -n | xargs");
    expect(/^Groups:\s(.*?)\s*$/m.exec(status)?.[1]).toBe(groups[1].trim());
    expect(machineLog()).not.toContain("as root");
    await holds("getent passwd forge-agent | grep -q ':/usr/sbin/nologin$'");

    // Check what the agent can't change or read, and what it owns.
    const as = "setpriv --reuid forge-agent --regid forge-agent --clear-groups";
    await holds(
      `! find ${INSTALLED} -path ${INSTALLED}/state -prune -o -user forge-agent -print | grep .`,
    );
    await holds(`! ${as} cat ${inHome}/agent.env`);
    await holds(`grep -q '^SERVICE_API_KEY="the-key"$' ${inHome}/agent.env`);
    await holds(`${as} test -w ${INSTALLED}/state/w/slot-0/kept`);
    await holds(`test "$(stat -c %U:%a ${INSTALLED}/state)" = forge-agent:700`);

    // Nothing of the earlier release is left.
    expect(() => process.kill(formerPid, 0)).toThrow("ESRCH");
    await holds(`! ls -d ${inHome}/venv ${inHome}/state`);
  }, 180_000);

  test("in the operator's directory it is installed in place, over root's files", async () => {
    upload(elsewhere);
    // Copy the installation of the previous test, so that the same commit is already installed.
    // Close all files to other users.
    await holds(`cp -a ${INSTALLED}/venv ${inHome}/repository ${elsewhere}`);
    await holds(`chmod -R go= ${elsewhere}/..`);
    mkdirSync(join(elsewhere, "state", "w", "slot-0"), { recursive: true, mode: 0o700 });
    const before = machine.pidOf(UNIT);

    expect(await step(elsewhere, "script")).toContain(`forge-agent, in ${elsewhere}\n`);
    expect(await step(elsewhere, "requirements")).toBe(
      "agent and handlers are already installed\n",
    );
    await step(elsewhere, "agent");

    expect(() => process.kill(before, 0)).toThrow("ESRCH");
    expect(await agentStatus()).not.toMatch(/^Uid:\s0/m);
    await holds(`test "$(stat -c %U ${elsewhere}/state/w/slot-0)" = forge-agent`);
    // Run the step again, as after a failure of the next step.
    await step(elsewhere, "agent");
    await agentStatus();
  }, 60_000);
});
