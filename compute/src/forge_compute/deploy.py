"""The deploy handler: serves a checkpoint until the process is ended."""

import json
import os
import time
from typing import NoReturn

from .failures import FatalError, TransientError
from .job import Job, write_result
from .language_model import device_of, load_model, parameter_count
from .openai_api import ApiServer
from .serving import QUEUE_LENGTH


def deploy(job: Job) -> NoReturn:
    """Serves an OpenAI-compatible API on FORGE_HOST:FORGE_PORT (0: any free port).

    Raises TransientError after a failure of the GPU, so that the agent starts a new process.

    If FORGE_DEPLOYMENT_TOKEN is set, requests need it as bearer token. The model's name is
    FORGE_DEPLOYMENT_ID, else the checkpoint's id. Writes the result and config.json before the
    server listens, because the agent reads both as soon as the server responds.
    """
    started = time.monotonic()
    host = os.environ.get("FORGE_HOST", "127.0.0.1")
    model = load_model(job.input("checkpoint_id"))
    checkpoint = str(job.payload["checkpoint_id"])
    deployment = os.environ.get("FORGE_DEPLOYMENT_ID")
    token = os.environ.get("FORGE_DEPLOYMENT_TOKEN") or None
    with ApiServer(host, _port(), deployment or checkpoint, model, token) as server:
        url = f"http://{host}:{server.server_port}/v1"
        config = {
            "deployment_id": deployment or job.output_ids["deployment_id"],
            "checkpoint_id": checkpoint,
            "model": server.model_name,
            "inference_url": url,
            "base_model": model.name,
            "parameter_count": parameter_count(model),
            "context": model.context,
            "device": device_of(model).type,
            "queue_length": QUEUE_LENGTH,
        }
        (job.output_dir / "config.json").write_text(json.dumps(config, indent=2))
        content = {
            "result": {name: config[name] for name in ("deployment_id", "inference_url", "model")},
            "metrics": {"duration_sec": round(time.monotonic() - started, 3)},
        }
        write_result(content)
        server.server_activate()
        print(f"serving {server.model_name} on {url}")
        server.serve_forever()
    raise TransientError(f"the GPU failed: {server.gpu_failure}")


def _port() -> int:
    text = os.environ.get("FORGE_PORT", "0")
    if not text.isdecimal() or int(text) > 65_535:
        raise FatalError(f"FORGE_PORT must be a port, not {text!r}")
    return int(text)
