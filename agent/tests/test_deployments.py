"""The deployed models of a slot."""

from pathlib import Path

import pytest
from agent_support import dispatched_job, free_ports

from forge_agent import deployments as module
from forge_agent.config import AgentConfig
from forge_agent.deployment import Deployment
from forge_agent.deployments import Deployments
from forge_agent.handler_failed import HandlerFailed
from forge_agent.lease import Lease
from forge_agent.masking import Mask, mask_for
from forge_agent.ports import release_ports


class _Server:
    """A deployed model without a process."""

    def __init__(self, _config: object, folder: Path, *_: object) -> None:
        self.folder = folder
        self.id = folder.name
        self.is_kept = True
        self.is_healthy = True
        self.is_stopped = False

    def watch(self) -> None:
        """Does nothing, because there is no process to watch."""

    def stop(self) -> None:
        self.is_stopped = True


def test_a_deploy_job_stops_only_the_deployment_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Deployment", _Server)
    config = AgentConfig("http://127.0.0.1:9", "k")
    for name in ("dep_1", "dep_2"):
        (tmp_path / name / "inputs").mkdir(parents=True)
    deployments = Deployments(config, tmp_path, {}, mask_for(config))
    deployments.restore()
    deployments.stop_previous(
        Lease.of(dispatched_job(job_type="deploy", output_ids={"deployment_id": "dep_1"}), "w")
    )
    assert [each["deployment_id"] for each in deployments.describe()] == ["dep_2"]
    assert not (tmp_path / "dep_1").exists()
    assert (tmp_path / "dep_2" / "inputs").is_dir()


def test_servers_get_different_ports_even_while_they_restart(tmp_path: Path) -> None:
    config = AgentConfig("http://127.0.0.1:9", "k")
    first, second = (Deployment(config, tmp_path / name, {}, Mask({})) for name in ("a", "b"))
    ports = free_ports(2)
    first.prepare("127.0.0.1", ports, None)
    first.keep()
    # A new agent reserves the port of each deployment that it will restore.
    release_ports("a")
    earlier = Deployments(config, tmp_path, {}, Mask({}))
    second.prepare("127.0.0.1", ports, None)
    assert first.url != second.url
    with pytest.raises(HandlerFailed, match="no port"):
        Deployment(config, tmp_path / "c", {}, Mask({})).prepare("127.0.0.1", ports, None)
    second.stop()
    Deployment(config, tmp_path / "c", {}, Mask({})).prepare("127.0.0.1", ports, None)
    for each in ("a", "c"):
        release_ports(each)
    assert earlier.describe() == []
