"""Configuration from the environment."""

import json
from pathlib import Path

import pytest

from forge_agent.config import AgentConfig, ConfigError

ENV = {"SERVICE_API_URL": "http://forge:8080/", "SERVICE_API_KEY": "k"}


def test_reads_the_specifications_variables() -> None:
    config = AgentConfig.from_env(
        {**ENV, "WORKER_ID": "w", "WORKER_TAGS": "a, b,", "HEARTBEAT_INTERVAL": "7"}
    )
    assert config.api_url == "http://forge:8080"
    assert (config.worker_id, config.tags, config.heartbeat_interval_s) == ("w", ("a", "b"), 7.0)


def test_a_worker_without_an_id_gets_one_of_its_own() -> None:
    first, second = AgentConfig.from_env(ENV), AgentConfig.from_env(ENV)
    assert first.worker_id != second.worker_id


def test_falls_back_to_the_local_stack(tmp_path: Path) -> None:
    content = {"api_url": "http://127.0.0.1:1", "worker_api_key": "w", "pids": {}}
    (tmp_path / "stack.json").write_text(json.dumps(content))
    config = AgentConfig.from_env({"FORGE_HOME": str(tmp_path)})
    assert (config.api_url, config.api_key) == ("http://127.0.0.1:1", "w")


@pytest.mark.parametrize(
    ("extra", "name"),
    [
        ({"SERVICE_API_URL": ""}, "SERVICE_API_URL"),
        ({"SERVICE_API_KEY": ""}, "SERVICE_API_KEY"),
        ({"HEARTBEAT_INTERVAL": "soon"}, "HEARTBEAT_INTERVAL"),
        ({"POLL_INTERVAL": "-1"}, "POLL_INTERVAL"),
        ({"LOCAL_MAX_RETRIES": "1.5"}, "LOCAL_MAX_RETRIES"),
    ],
)
def test_names_what_is_wrong(tmp_path: Path, extra: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        AgentConfig.from_env({**ENV, "FORGE_HOME": str(tmp_path), **extra})


def test_never_shows_its_key() -> None:
    assert "secret-key" not in repr(AgentConfig.from_env({**ENV, "SERVICE_API_KEY": "secret-key"}))
