"""The command line of a handler's container, and what the container can access."""

import json
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from agent_support import ScriptedServer, dispatched_job, free_ports
from hostile_support import Received, run_hostile

from forge_agent import container as module
from forge_agent.config import AgentConfig, HandlerConfig
from forge_agent.container import (
    Container,
    container_command,
    container_name,
    remove_containers,
    require_runtime,
)
from forge_agent.control_plane import ControlPlane
from forge_agent.deployment import Deployment
from forge_agent.deployments import Deployments
from forge_agent.handler_failed import HandlerFailed
from forge_agent.handler_folder import HandlerFolder
from forge_agent.lease import Lease
from forge_agent.masking import Mask
from forge_agent.ports import release_ports
from forge_agent.settings import ConfigError
from forge_agent.slot_user import SlotUser

CONFIG = HandlerConfig(("python", "train.py"), image="team/train:1", env={"TOKEN": "secret"})
# A fake docker. It runs the command without a container, but with the environment variables that
# the container would have.
FAKE = f"""#!{sys.executable}
import json, os, sys
if sys.argv[1] != "run": sys.exit()
words = sys.argv[1:]
with open({{log!r}}, "w") as file: json.dump(words, file)
named = [word for before, word in zip(words, words[1:]) if before == "--env"]
set_here = dict(word.split("=", 1) for word in named if "=" in word)
env = {{{{name: os.environ[name] for name in named if name in os.environ}}}} | set_here
os.chdir(words[words.index("--workdir") + 1])
command = words[words.index("team/train:1") + 1:]
os.execve(command[0], command, env)
"""


@pytest.fixture
def docker_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The arguments of the last `docker run`, recorded by a fake docker."""
    log = tmp_path / "docker.json"
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(FAKE.format(log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    yield log


@pytest.fixture
def folder(tmp_path: Path) -> HandlerFolder:
    folder = HandlerFolder(tmp_path / "job" / "try-1")
    folder.create()
    (tmp_path / "job" / "inputs").mkdir()
    folder.job_file.touch()
    return folder


def _command(folder: HandlerFolder, config: HandlerConfig = CONFIG, **env: str) -> tuple[str, ...]:
    return container_command(config, Container("forge-job_1-1", folder), env)


def _values(command: tuple[str, ...] | list[str], flag: str) -> list[str]:
    return [word for before, word in pairwise(command) if before == flag]


@pytest.mark.usefixtures("docker_log")
def test_a_container_can_read_its_jobs_files_and_write_to_its_own_folder_only(
    folder: HandlerFolder,
) -> None:
    job = folder.path.parent
    command = _command(folder)
    assert _values(command, "--mount") == [
        f"type=bind,source={job}/try-1.json,target={job}/try-1.json,readonly",
        f"type=bind,source={job}/inputs,target={job}/inputs,readonly",
        f"type=bind,source={job}/try-1,target={job}/try-1",
    ]
    assert "--volume" not in command
    assert "--read-only" in command
    assert _values(command, "--tmpfs") == ["/tmp:rw,nosuid,nodev,size=1g"]


@pytest.mark.usefixtures("docker_log")
def test_a_container_has_no_privileges_and_has_limits(folder: HandlerFolder) -> None:
    command = _command(folder)
    assert _values(command, "--cap-drop") == ["all"]
    assert _values(command, "--security-opt") == ["no-new-privileges"]
    assert _values(command, "--network") == ["bridge"]
    assert _values(command, "--publish") == []
    assert _values(command, "--pids-limit") == ["4096"]
    assert 0 < int(_values(command, "--memory")[0]) < os.sysconf("SC_PHYS_PAGES") * 4096
    assert int(_values(command, "--cpus")[0]) >= 1
    limits = HandlerConfig(("x",), "i", memory_gb=2, cpus=1.5, pids=9, network="none")
    command = _command(folder, limits)
    assert _values(command, "--memory") == ["2000000000"]
    assert _values(command, "--cpus") == ["1.5"]
    assert _values(command, "--pids-limit") == ["9"]
    assert _values(command, "--network") == ["none"]
    assert "--cpus" not in _command(folder, HandlerConfig(("x",), "i", cpus=0))


@pytest.mark.usefixtures("docker_log")
def test_a_container_runs_as_the_slots_user_with_the_groups_of_the_gpu(
    folder: HandlerFolder,
) -> None:
    assert _values(_command(folder), "--user") == [f"{os.getuid()}:{os.getgid()}"]
    container = Container("n", folder, SlotUser(61_002, (44, 109)))
    command = container_command(CONFIG, container, {})
    assert _values(command, "--user") == ["61002:61002"]
    assert _values(command, "--group-add") == ["44", "109"]


@pytest.mark.usefixtures("docker_log")
def test_the_command_line_has_the_names_of_variables_but_not_their_values(
    folder: HandlerFolder,
) -> None:
    command = _command(folder, FORGE_JOB_FILE="/job.json", TOKEN="secret")
    assert _values(command, "--env")[2:] == ["FORGE_JOB_FILE", "TOKEN"]
    assert "secret" not in " ".join(command)
    assert command[-3:] == ("team/train:1", "python", "train.py")


@pytest.mark.usefixtures("docker_log")
def test_a_container_has_only_its_slots_gpu(
    folder: HandlerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_DRIVER", Path("/dev/null"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert _values(_command(folder), "--gpus") == ["all"]
    command = _command(folder, CUDA_VISIBLE_DEVICES="2")
    assert _values(command, "--gpus") == ['"device=2"']
    # Inside the container, this GPU has number 0. With the host's number, no GPU would be found.
    assert "CUDA_VISIBLE_DEVICES" not in command
    assert "--gpus" not in _command(folder, CUDA_VISIBLE_DEVICES="")


def test_an_image_needs_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match=r"handlers\.train\.image needs docker or podman"):
        require_runtime({"train": CONFIG})


def test_a_new_agent_removes_only_its_own_workers_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "removed"
    program = tmp_path / "docker"
    program.write_text(
        f"""#!{sys.executable}
import sys
if sys.argv[1] == "ps": print("forge-gpu-job_1-1 forge-gpu-2-job_1-1 my-forge-gpu-job_1-1")
else: open({str(removed)!r}, "a").write(sys.argv[-1] + "\\n")
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    remove_containers({"audit": CONFIG}, "gpu")
    assert removed.read_text().split() == [container_name("gpu", "job_1", 1)]


def test_a_new_agent_removes_the_container_of_a_deployment_whose_job_did_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "removed"
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {removed}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    # The new agent may have no handler for deploy jobs.
    config = AgentConfig("http://127.0.0.1:9", "k", handlers={})
    home = tmp_path / "deployments"
    killed = Deployment(config, home / "dep_1", {}, Mask({}))
    killed.prepare("127.0.0.1", free_ports(1), None)
    release_ports("dep_1")
    Deployments(config, home, {}, Mask({})).restore()
    assert removed.read_text().splitlines() == ["rm --force forge-dep_1"]
    assert not killed.folder.exists()


def test_a_container_does_not_get_the_agents_environment_or_log(
    control_plane: ControlPlane,
    server: ScriptedServer,
    tmp_path: Path,
    docker_log: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HF_TOKEN", "FORGE_DATABASE_URL", "SERVICE_API_KEY"):
        monkeypatch.setenv(name, "secret-of-the-agent")
    received = Received(server)
    code = "print(sorted(os.environ)); print(os.environ['HOME'] == os.environ['TMPDIR'])"
    report = run_hostile(control_plane, tmp_path, code, {}, image="team/train:1")
    assert report["status"] == "completed"
    assert b"secret-of-the-agent" not in received.log
    for name in (b"HF_TOKEN", b"FORGE_DATABASE_URL", b"SERVICE_API_KEY"):
        assert name not in received.log
    assert b"'FORGE_OUTPUT_DIR'" in received.log
    assert received.log.splitlines()[1] == b"True"
    words = json.loads(docker_log.read_text())
    sources = [mount.split(",")[1].removeprefix("source=") for mount in _values(words, "--mount")]
    log = tmp_path / "work" / "job_1-1" / "log"
    assert not any(log.is_relative_to(source) for source in sources)


def test_a_deployments_container_publishes_its_port_and_does_not_mount_its_log(
    tmp_path: Path, docker_log: Path
) -> None:
    command = (sys.executable, "-c", "import os; print(os.environ['FORGE_HOST'])")
    handlers = {"deploy": HandlerConfig(command, image="team/train:1")}
    config = AgentConfig("http://127.0.0.1:9", "k", handlers=handlers, stop_grace_s=0.1)
    deployment = Deployment(config, tmp_path / "deployments" / "dep_1", {}, Mask({}))
    ports = free_ports(1)
    deployment.prepare("localhost", ports, "forge_model_t")
    deployment.run_folder.describe(Lease.of(dispatched_job(job_type="deploy"), "w"), {}, None, {})
    deployment.start()
    with pytest.raises(HandlerFailed, match="ended before it was healthy"):
        deployment.wait_until_healthy()
    assert deployment._pump
    deployment._pump.join()
    assert (deployment.folder / "server.log").read_text() == "0.0.0.0\n"
    words = json.loads(docker_log.read_text())
    assert _values(words, "--publish") == [f"127.0.0.1:{ports[0]}:{ports[0]}"]
    assert _values(words, "--mount") == [
        f"type=bind,source={deployment.folder}/run.json,target={deployment.folder}/run.json,readonly",
        f"type=bind,source={deployment.folder}/run,target={deployment.folder}/run",
    ]
    deployment.stop()
