"""The agent's state on the machine: state folder, spool, preflight and status."""

import sys
from pathlib import Path

import pytest

from forge_agent import container, gpu
from forge_agent.agent import assign_gpus
from forge_agent.config import AgentConfig
from forge_agent.gpu import CPU, Gpus, Nvml, is_visible
from forge_agent.job_inputs import NoSuchInput, below, local_path
from forge_agent.preflight import find_fault
from forge_agent.settings import ConfigError
from forge_agent.spool import Spool
from forge_agent.state import StateFolder, read_statuses
from forge_agent.status import show_status

CONFIG = AgentConfig("http://127.0.0.1:1", "k")


def test_a_worker_keeps_its_generated_name(tmp_path: Path) -> None:
    first = StateFolder(tmp_path, None)
    with pytest.raises(ConfigError, match="set another WORKER_ID"):
        StateFolder(tmp_path, None)
    other = StateFolder(tmp_path, "other")
    name = first.worker_id
    del first
    assert (tmp_path / "worker-id").read_text().startswith(f"{name} ")
    assert StateFolder(tmp_path, None).worker_id == name
    assert other.worker_id == "other"
    with pytest.raises(ConfigError, match="WORKER_ID"):
        StateFolder(tmp_path, "../up")
    (tmp_path / "worker-id").write_text(f"{name} of-another-machine")
    assert StateFolder(tmp_path, None).worker_id != name
    (tmp_path / "worker-id").write_text("")
    assert StateFolder(tmp_path, None).worker_id


def test_a_result_is_kept_until_it_is_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.unsent() is None
    spool.keep({"job_id": "job_1", "attempt": 2})
    assert Spool(tmp_path).unsent() == {"job_id": "job_1", "attempt": 2}
    spool.remove()
    spool.remove()
    assert Spool(tmp_path).unsent() is None
    (tmp_path / "unsent-result.json").write_text("{half")
    assert spool.unsent() is None


def test_a_full_disk_does_not_prevent_sending_a_result(tmp_path: Path) -> None:
    (tmp_path / "unsent-result.part").symlink_to("/dev/full")
    Spool(tmp_path).keep({"job_id": "job_1"})


def test_preflight_reports_the_fault(tmp_path: Path) -> None:
    assert find_fault(CONFIG, tmp_path, Nvml(), CPU) is None
    full = AgentConfig("u", "k", min_free_disk_gb=1e6)
    assert "GB free, less than" in str(find_fault(full, tmp_path, Nvml(), CPU))
    (tmp_path / "file").touch()
    assert "can't be used" in str(find_fault(CONFIG, tmp_path / "file" / "x", Nvml(), CPU))
    local = AgentConfig("u", "k", artifacts_dir=tmp_path / "file" / "x")
    assert "can't be created" in str(find_fault(local, tmp_path, Nvml(), CPU))


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_a_machine_without_gpu() -> None:
    nvml = Nvml()
    assert nvml.find_gpus() == CPU
    assert nvml.read_load(CPU).mem_total == 0
    gone = Gpus("NVIDIA A100", 80, (0,))
    assert nvml.read_load(gone).mem_total == 0
    assert nvml.foreign_processes(gone) == []


def test_processes_in_an_agents_container_are_not_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "docker"
    program.write_text(
        f"""#!{sys.executable}
assert "--no-trunc" in __import__("sys").argv
print("{"a" * 64} forge-dep_1")
print("{"b" * 64} my-forge-training")
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    groups = {
        1: f"0::/system.slice/docker-{'a' * 64}.scope",
        2: f"0::/system.slice/docker-{'b' * 64}.scope",
        3: "0::/user.slice",
    }
    monkeypatch.setattr(gpu, "_cgroup_of", groups.__getitem__)
    assert gpu.without_contained([1, 2, 3]) == [2, 3]
    assert gpu.without_contained([]) == []
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(container, "_ANSWER_TIMEOUT_S", 0.1)
    assert gpu.without_contained([1, 2, 3]) == []


def test_per_gpu_gives_each_slot_one_gpu() -> None:
    two = Gpus("NVIDIA A100", 80, (2, 5))
    assert [
        (gpus.indices, env["CUDA_VISIBLE_DEVICES"]) for gpus, env in assign_gpus(two, "per-gpu")
    ] == [
        ((2,), "2"),
        ((5,), "5"),
    ]
    assert assign_gpus(two, "1") == [(two, {})]
    assert assign_gpus(CPU, "per-gpu") == [(CPU, {})]
    assert assign_gpus(CPU, "3") == [(CPU, {})] * 3


@pytest.mark.parametrize(
    ("visible", "seen"),
    [(None, True), ("1", True), ("0,1", True), ("0", False), ("", False), ("GPU-ab", True)],
)
def test_the_agent_uses_visible_gpus_only(visible: str | None, seen: bool) -> None:
    assert is_visible(visible, 1, "GPU-ab12") is seen


def test_status_shows_whether_an_agent_is_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show_status(tmp_path, as_json=False) == 3
    folder = StateFolder(tmp_path, "box")
    slot = {
        "worker_id": "box",
        "state": "busy",
        "reason": None,
        "since": 0,
        "gpu": "cpu",
        "job_id": "job_1",
        "job_type": "train",
        "deployments": [{"deployment_id": "dep_1", "healthy": False}],
    }
    folder.write_status({"pid": 7, "api_url": "http://forge", "started_at": 0, "slots": [slot]})
    assert [status["running"] for status in read_statuses(tmp_path)] == [True]
    assert show_status(tmp_path, as_json=False) == 0
    shown = capsys.readouterr().out
    assert "running as process 7" in shown
    assert "train job_1, serves dep_1 (not healthy)" in shown
    del folder
    assert show_status(tmp_path, as_json=False) == 3
    assert "not running: box" in capsys.readouterr().out


def test_refuses_uris_and_names_outside_of_their_folder(tmp_path: Path) -> None:
    root = tmp_path / "artifacts"
    (root / "datasets").mkdir(parents=True)
    assert local_path(root, "forge://artifacts/datasets/x") == root / "datasets" / "x"
    assert local_path(root, f"file://{root}/datasets/x") == root / "datasets" / "x"
    (root / "link").symlink_to("/etc")
    for uri in (
        "forge://artifacts/../secrets",
        "forge://artifacts/%2e%2e/secrets",
        "forge://artifacts/link/passwd",
        "file:///etc/passwd",
        "forge://other/x",
        "s3://bucket/key",
    ):
        with pytest.raises(NoSuchInput):
            local_path(root, uri)
    for name in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(NoSuchInput):
            below(root, name)
