"""Configuration precedence: flags, variables, file, local stack."""

import json
from pathlib import Path

import pytest

from forge_agent.config import AgentConfig, HandlerConfig, Teacher
from forge_agent.settings import SETTINGS, ConfigError, describe_settings

ENV = {"SERVICE_API_URL": "http://forge:8080/", "SERVICE_API_KEY": "k"}

CONTAINER = "[handlers.deploy]\ncommand = 'x'\nimage = 'i'\n"


def _load(toml: str, folder: Path, **env: str) -> AgentConfig:
    file = folder / "agent.toml"
    file.write_text(toml)
    return AgentConfig.load(file, {**ENV, **env})


def test_reads_the_variables_of_the_specification() -> None:
    config = AgentConfig.load(
        env={**ENV, "WORKER_ID": "w", "WORKER_TAGS": "a, b,", "HEARTBEAT_INTERVAL": "7"}
    )
    assert config.api_url == "http://forge:8080"
    assert (config.worker_id, config.tags, config.heartbeat_interval_s) == ("w", ("a", "b"), 7.0)


def test_falls_back_to_the_local_stack(tmp_path: Path) -> None:
    content = {"api_url": "http://127.0.0.1:1", "worker_api_key": "w", "pids": {}}
    (tmp_path / "stack.json").write_text(json.dumps(content))
    config = AgentConfig.load(env={"FORGE_HOME": str(tmp_path)})
    assert (config.api_url, config.api_key) == ("http://127.0.0.1:1", "w")


def _stack_at(folder: Path, api_url: str, **env: str) -> tuple[str, str]:
    (folder / "stack.json").write_text(json.dumps({"api_url": api_url, "worker_api_key": "local"}))
    config = AgentConfig.load(env={"FORGE_HOME": str(folder), **env})
    return config.api_url, config.api_key


def test_no_key_goes_to_an_address_that_it_is_not_for(tmp_path: Path) -> None:
    local = "http://127.0.0.1:1"
    assert _stack_at(tmp_path, local, SERVICE_API_KEY="mine") == (local, "mine")
    assert _stack_at(tmp_path, local, SERVICE_API_URL=f"{local}/") == (local, "local")
    with pytest.raises(ConfigError, match="SERVICE_API_URL is not set"):
        _stack_at(tmp_path, "http://elsewhere:1", SERVICE_API_KEY="mine")
    with pytest.raises(ConfigError, match="SERVICE_API_KEY is not set"):
        _stack_at(tmp_path, local, SERVICE_API_URL="http://elsewhere:1")


@pytest.mark.parametrize("content", ["[]", "1", "not JSON"])
def test_a_stack_file_that_is_no_object_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "stack.json").write_text(content)
    with pytest.raises(ConfigError, match="no local stack runs"):
        AgentConfig.load(env={"FORGE_HOME": str(tmp_path)})


def test_variables_and_flags_override_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    config = _load(
        """
        worker_id = "from-file"
        tags = ["a", "b"]
        slots = "per-gpu"
        allow_job_types = ["train"]
        [handlers.train]
        command = "python train.py --fast 'two words'"
        memory_gb = 40
        env = { MODE = "full" }
        [teachers.large]
        base_url = "http://teacher:8000/v1"
        api_key_env = "LARGE_KEY"
        """,
        tmp_path,
        WORKER_TAGS="c",
        TEACHER_BASE_URL="http://any/v1",
    )
    assert (config.worker_id, config.tags, config.slots) == ("from-file", ("c",), "per-gpu")
    # Jobs run in other folders, so paths of files next to the TOML file become absolute.
    command = ("python", str(tmp_path / "train.py"), "--fast", "two words")
    assert config.handlers == {"train": HandlerConfig(command, memory_gb=40, env={"MODE": "full"})}
    assert config.teachers == {
        "large": Teacher("http://teacher:8000/v1", api_key_env="LARGE_KEY"),
        "*": Teacher("http://any/v1", api_key_env="TEACHER_API_KEY"),
    }
    assert AgentConfig.load(tmp_path / "agent.toml", ENV, slots="2").slots == "2"


def test_reads_the_workers_own_bucket() -> None:
    s3 = {"S3_ACCESS_KEY_ID": "id", "S3_SECRET_ACCESS_KEY": "secret", "S3_BUCKET": "b"}
    assert str(AgentConfig.load(env={**ENV, **s3}).s3).startswith(
        "S3Config(scheme='s3', bucket='b'"
    )
    spaces = {
        "SPACES_KEY": "id",
        "SPACES_SECRET": "s",
        "SPACES_BUCKET": "b",
        "SPACES_REGION": "fra1",
    }
    both = AgentConfig.load(env={**ENV, **s3, **spaces}).s3
    assert both is not None
    assert (both.scheme, both.endpoint) == ("spaces", "https://fra1.digitaloceanspaces.com")


@pytest.mark.parametrize(
    ("extra", "name"),
    [
        ({"SERVICE_API_URL": ""}, "SERVICE_API_URL"),
        ({"SERVICE_API_KEY": ""}, "SERVICE_API_KEY"),
        ({"SERVICE_API_URL": "forge:8080"}, "SERVICE_API_URL"),
        ({"HEARTBEAT_INTERVAL": "soon"}, "HEARTBEAT_INTERVAL"),
        ({"POLL_INTERVAL": "-1"}, "POLL_INTERVAL"),
        ({"LOCAL_MAX_RETRIES": "1.5"}, "LOCAL_MAX_RETRIES"),
        ({"WORKER_SLOTS": "0"}, "WORKER_SLOTS"),
        ({"DEPLOY_PORTS": "80"}, "DEPLOY_PORTS"),
        ({"S3_ACCESS_KEY_ID": "id"}, "S3_SECRET_ACCESS_KEY"),
        ({"SPACES_KEY": "id", "SPACES_SECRET": "s"}, "SPACES_BUCKET"),
    ],
)
def test_names_the_invalid_variable(tmp_path: Path, extra: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        AgentConfig.load(env={**ENV, "FORGE_HOME": str(tmp_path), **extra})


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("worker-id = 1", "unknown setting worker-id"),
        ("tags = 1", "WORKER_TAGS"),
        ("tags = [", "is not TOML"),
        ("handlers = 1", "handlers"),
        ("[handlers.bake]\ncommand = 'x'", "handlers.bake: unknown job type"),
        ("[handlers.train]", "handlers.train.command"),
        ("[handlers.train]\ncommand = []", "handlers.train.command"),
        ("[handlers.train]\ncommand = 'x'\nmemory_gb = 0", "handlers.train.memory_gb"),
        ("[handlers.train]\ncommand = 'x'\nmem = 1", "handlers.train: unknown setting mem"),
        ("[handlers.train]\ncommand = 'x'\ncpus = 1", "cpus is for containers only"),
        (CONTAINER + "network = 'host'", "handlers.deploy.network must be"),
        (CONTAINER + "network = 'container:other'", "handlers.deploy.network must be"),
        (CONTAINER + "network = 'none'", "a deployed model is not reachable"),
        (CONTAINER + "pids = 0", "handlers.deploy.pids"),
        (CONTAINER + "cpus = 'all'", "handlers.deploy.cpus"),
        ("[teachers.t]\nmodel = 'x'", "teachers.t"),
    ],
)
def test_names_the_invalid_setting_of_the_file(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _load(toml, tmp_path)


def test_does_not_show_secrets() -> None:
    s3 = {"S3_ACCESS_KEY_ID": "the-id", "S3_SECRET_ACCESS_KEY": "the-secret", "S3_BUCKET": "b"}
    shown = repr(AgentConfig.load(env={**ENV, **s3, "SERVICE_API_KEY": "secret-key"}))
    for secret in ("secret-key", "the-id", "the-secret"):
        assert secret not in shown
    with pytest.raises(ConfigError) as raised:
        AgentConfig.load(env={**ENV, "SERVICE_API_KEY": "secret\nkey"})
    assert "secret\nkey" not in str(raised.value)


def test_help_names_every_variable() -> None:
    for setting in SETTINGS:
        assert setting.env in describe_settings()
