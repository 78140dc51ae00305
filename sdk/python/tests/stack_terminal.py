"""Tests `forge` in a real terminal with a real stack. test/e2e/forge-command.test.ts runs it.

With a folder as argument, writes screenshots there. Exits with 0 on success.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from steered_worker import SteeredWorker
from terminal import CTRL_C, Terminal

from forge import Forge

PICTURES = Path(sys.argv[1]) if len(sys.argv) > 1 else None
FORGE = [sys.executable, "-m", "forge"]
ENV = dict(os.environ)
DATA = "s3://team-data/raw/questions.parquet"
TRAIN = "jobs submit train --model llama-3-8b --dataset s3://law/sft.parquet --gpu 1 --wait"
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def forge(words: str, columns: int = 80, **env: str) -> Terminal:
    return Terminal([*FORGE, *words.split()], {**ENV, **env}, columns=columns)


def piped(words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FORGE, *words.split()], env=ENV, capture_output=True, text=True, check=False, timeout=30
    )


def photograph(terminal: Terminal, name: str, words: str) -> None:
    if PICTURES:
        terminal.picture(PICTURES / f"{name}.svg", f"forge {words}")


def fits(columns: int) -> Callable[[str], bool]:
    return lambda text: all(len(line) <= columns for line in text.split("\n"))


def job_id_on(text: str) -> str:
    found = re.search(r"job_\w+", text)
    assert found, text
    return found[0]


def a_job_is_left_and_come_back_to(client: Forge, worker: SteeredWorker) -> None:
    with forge(TRAIN) as terminal:
        job = worker.take("train")
        terminal.until("running")
        worker.progress(job, 0.46)
        screen = terminal.until("46%")
        assert "train job_" in screen and "━" in screen, screen
        assert COLOUR.search(terminal.raw)
        photograph(terminal, "cli-job", TRAIN)
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert f"{job['job_id']} continues. To wait for it again:" in terminal.text
        assert f"forge jobs wait {job['job_id']}" in terminal.text
        assert "46%" not in terminal.text, terminal.text
        photograph(terminal, "cli-detach", TRAIN)
    assert client.status(job["job_id"]).status == "running"
    with forge(f"jobs wait {job['job_id']}") as terminal:
        terminal.until("46%")
        worker.progress(job, 0.9)
        terminal.until("90%")
        worker.complete(job, {"gpu_hours": 0.5})
        assert terminal.ended() == 0
        assert f"{job['job_id']} completed in 0:" in terminal.text
        assert "$" in terminal.text and "90%" not in terminal.text


def the_sdk_shows_it_too(client: Forge, worker: SteeredWorker) -> None:
    job_id = client.evaluate("ckpt_1").job_id
    job = worker.take("evaluate")
    worker.progress(job, 0.7)
    script = f"from forge import Forge; print(Forge().wait({job_id!r}).status)"
    with Terminal([sys.executable, "-c", script], ENV) as terminal:
        terminal.until("70%")
        terminal.press(CTRL_C)
        assert terminal.ended() != 0
        said = f'{job_id} continues. To wait for it again: client.wait("{job_id}")'
        assert said in terminal.text.replace("\n", ""), terminal.text
        assert "KeyboardInterrupt" in terminal.text
    with Terminal([sys.executable, "-c", script], {**ENV, "FORGE_PROGRESS": "0"}) as terminal:
        worker.complete(job, {"samples_evaluated": 100}, scores={"overall": 0.9})
        assert terminal.ended() == 0
        assert terminal.raw == b"completed\r\n"


def narrow_and_without_colours(worker: SteeredWorker) -> None:
    with forge(TRAIN, 40, NO_COLOR="1") as terminal:
        job = worker.take("train")
        worker.progress(job, 0.5)
        screen = terminal.until(lambda text: "running" in text and "50%" in text)
        assert fits(40)(screen) and screen.count("50%") == 1, screen
        worker.fail(job, "CUDA out of memory")
        assert terminal.ended() == 1
        assert "failed" in terminal.text and "CUDA out of memory" in terminal.text
        assert not COLOUR.search(terminal.raw), terminal.raw


def why_it_waits(client: Forge) -> None:
    with forge("jobs submit train --model m --dataset ds_law --gpu 8 --wait", 40) as terminal:
        screen = terminal.until(lambda text: "8 GPUs" in " ".join(text.split()))
        assert "pending" in screen and fits(40)(screen), screen
        job_id = job_id_on(screen)
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
    assert piped(f"jobs cancel {job_id}").stdout == f"{job_id} is cancelled\n"
    ended = piped(f"jobs wait {job_id} --json")
    assert ended.returncode == 1 and json.loads(ended.stdout)["error_code"] == "cancelled", ended


def a_log_is_followed(worker: SteeredWorker) -> None:
    job_id = piped(f"jobs submit audit --dataset {DATA}").stdout.strip()
    job = worker.take("audit")
    assert job["job_id"] == job_id
    worker.log(job, 0, "first\n")
    with forge(f"jobs logs -f {job_id}") as terminal:
        terminal.until("first")
        worker.log(job, 6, "\x1b[2Jsecond\n")
        terminal.until("\\x1b[2Jsecond")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert f"forge jobs logs -f {job_id}" in terminal.text
    worker.fail(job, "no rows")
    ended = piped(f"jobs wait {job_id}")
    assert ended.returncode == 1 and "failed" in ended.stdout and "no rows" in ended.stdout, ended
    assert "\x1b" not in ended.stdout + ended.stderr


def a_pipeline(worker: SteeredWorker) -> str:
    options = (
        f"--template byo-data --skip deploy --approval evaluate --budget 50 "
        f"--set audit.dataset_uri={DATA} --set distill.teacher=llama-3-70b "
        f"--set train.model=llama-3-8b --set train.epochs=3"
    ).split()
    gate = ["--gate", "evaluate:scores.overall >= 0.95"]
    command = [*FORGE, "pipelines", "run", *options, *gate, "--wait"]
    with Terminal(command, ENV) as terminal:
        audit = worker.take("audit")
        worker.complete(audit, {"rows_processed": 100_000}, quality={"clarity_mean": 0.8})
        worker.complete(worker.take("distill"), {"tokens_generated": 2_000_000})
        train = worker.take("train")
        worker.progress(train, 0.3)
        screen = terminal.until(lambda text: "30%" in text and "gate scores.overall" in text)
        lines = [line for line in screen.split("\n") if re.search("[├└]─", line)]
        steps = [re.sub(r"[^a-z ]", "", line).split()[:2] for line in lines]
        assert steps == [
            ["audit", "completed"],
            ["distill", "completed"],
            ["train", "running"],
            ["evaluate", "pending"],
        ], screen
        photograph(terminal, "cli-pipeline", "pipelines run --template byo-data … --wait")
        found = re.search(r"pl_\w+|pipe_\w+", screen)
        assert found, screen
        pipeline_id = found[0]
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert f"forge pipelines wait {pipeline_id}" in terminal.text
    with forge(f"pipelines wait {pipeline_id}", 40) as terminal:
        worker.complete(train, {"gpu_hours": 1})
        screen = terminal.until(lambda text: "gate" in text.partition("waiting approval")[2])
        assert fits(40)(screen), screen
        photograph(terminal, "cli-narrow", f"pipelines wait {pipeline_id}")
        assert piped(f"pipelines approve {pipeline_id} --note fine").stdout == f"{pipeline_id}\n"
        evaluate = worker.take("evaluate")
        worker.complete(evaluate, {"samples_evaluated": 100}, scores={"overall": 0.9})
        assert terminal.ended() == 1
        words = " ".join(terminal.text.split())
        assert "not passed" in words and "forge pipelines resume" in words, terminal.text
    return pipeline_id


def a_pipeline_goes_on(pipeline_id: str) -> None:
    gate = ["--gate", "evaluate:scores.overall >= 0.8"]
    with Terminal([*FORGE, "pipelines", "resume", pipeline_id, *gate, "--wait"], ENV) as terminal:
        assert terminal.ended() == 0, terminal.text
        assert "completed" in terminal.text and "passed" in terminal.text, terminal.text
    listed = json.loads(piped("pipelines list --json").stdout)["pipelines"]
    assert [each["status"] for each in listed] == ["completed"]
    table = piped("jobs list --type train").stdout
    assert table.startswith("JOB ") and table.count("\n") == 5, table
    with forge("jobs list", 40) as terminal:
        assert terminal.ended() == 0
        assert fits(40)(terminal.text) and "STATUS" in terminal.text, terminal.text


def logging_in(home: Path) -> None:
    key, url = ENV.pop("SERVICE_API_KEY"), ENV.pop("SERVICE_BASE_URL")
    try:
        with forge(f"login {url}") as terminal:
            terminal.until("Key (not shown):")
            terminal.press(key.encode() + b"\n")
            assert terminal.ended() == 0, terminal.text
            assert "Logged in" in terminal.text and key.encode() not in terminal.raw
        saved = home / "forge" / "credentials.json"
        assert saved.stat().st_mode & 0o777 == 0o600
        assert json.loads(piped("whoami --json").stdout)["source"] == "login"
        with forge("doctor") as terminal:
            assert terminal.ended() == 0, terminal.text
            assert "key: of" in terminal.text, terminal.text
            photograph(terminal, "cli-doctor", "doctor")
        assert piped("logout").stdout == "Logged out\n" and not saved.exists()
        assert piped("whoami").returncode == 2
    finally:
        ENV.update(SERVICE_API_KEY=key, SERVICE_BASE_URL=url)


with Forge() as client:
    worker = SteeredWorker(ENV["SERVICE_BASE_URL"], ENV["WORKER_KEY"], "gpu-1")
    a_job_is_left_and_come_back_to(client, worker)
    the_sdk_shows_it_too(client, worker)
    narrow_and_without_colours(worker)
    why_it_waits(client)
    a_log_is_followed(worker)
    a_pipeline_goes_on(a_pipeline(worker))
    logging_in(Path(ENV["XDG_CONFIG_HOME"]))
    worker.close()
    client.workers.remove("gpu-1")
print("all right")
