"""A job's log: masked, limited in size, and uploaded while it grows."""

import io
import os
import resource
import time
from pathlib import Path

import pytest
from agent_support import Answer, Cut, Request, ScriptedServer, as_error, as_json

from forge_agent.control_plane import ControlPlane
from forge_agent.job_report import Reports
from forge_agent.lease import Lease
from forge_agent.log_file import LogFile
from forge_agent.log_sender import LogSender
from forge_agent.masking import Mask

SECRETS = {"MY_API_KEY": "sk-1234567890", "DB_PASSWORD": "sk-1234567890-longer", "PIN_KEY": "1234"}


def _pump(path: Path, output: bytes, max_bytes: int = 10_000_000) -> bytes:
    log = LogFile(path, max_bytes, Mask(SECRETS))
    reports = Reports(path.with_name("progress"))
    log.pump(io.BufferedReader(io.BytesIO(output)), reports.read_line)  # type: ignore[arg-type]
    log.close()
    return path.read_bytes()


def test_masks_secrets_of_the_environment_even_across_split_lines(tmp_path: Path) -> None:
    assert _pump(tmp_path / "a", b"key sk-1234567890-longer, 1234\n") == b"key ***, 1234\n"
    for before in range(65_500, 65_560):
        written = _pump(tmp_path / "b", b"x" * before + b"sk-1234567890" + b"y" * 200_000)
        assert b"sk-1234567890" not in written.replace(b"\n", b"")
        (tmp_path / "b").unlink()
    # `pump` writes the beginning of a long line and keeps the end for later. The end is as long as
    # the longest secret. This loop moves the secret across the cut, one byte at a time.
    for after in range(60):
        written = _pump(tmp_path / "c", b"x" * 70_000 + b"sk-1234567890" + b"y" * after)
        assert written.replace(b"\n", b"") == b"x" * 70_000 + b"***" + b"y" * after
        (tmp_path / "c").unlink()


def test_keeps_beginning_and_end_of_a_log_over_its_limit(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % n for n in range(200_000))
    written = _pump(tmp_path / "log", lines, max_bytes=500_000)
    assert len(written) <= 500_000
    assert written.startswith(b"line 0\nline 1\n")
    assert written.endswith(b"line 199998\nline 199999\n")
    mark = next(line for line in written.splitlines() if b"[forge]" in line)
    left_out = int(mark.split(b" bytes")[0].rpartition(b" ")[2])
    assert left_out + len(written) - len(mark) - 1 == len(lines)


def test_removes_reports_and_splits_progress_bars_into_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, 1_000_000, Mask({}))
    reports = Reports(tmp_path / "progress")
    output = (
        b'start\r\n10%\r20%\r::forge {"progress": 0.5, "metrics": {"tokens": 7}}\n::forge 0.6\nend'
    )
    log.pump(io.BufferedReader(io.BytesIO(output)), reports.read_line)  # type: ignore[arg-type]
    assert path.read_bytes() == b"start\n10%\n20%\nend\n"
    assert (reports.latest().progress, reports.latest().metrics) == (0.6, {"tokens": 7})


@pytest.mark.parametrize(
    ("content", "progress", "metrics"),
    [
        ("0.25", 0.25, {}),
        ("7", 1.0, {}),
        (
            '{"progress": 0.5, "metrics": {"rows_processed": 3, "name": "x"}}',
            0.5,
            {"rows_processed": 3},
        ),
        ("NaN", None, {}),
        ("half", None, {}),
        ("[1]", None, {}),
        ("1" + "0" * 400, None, {}),
        ("[" * 60_000, None, {}),
        ('{"progress": 0.5, "metrics": {"n": 1' + "0" * 400 + "}}", 0.5, {}),
        ('{"progress": true}', None, {}),
    ],
)
def test_reads_the_progress_file(
    tmp_path: Path, content: str, progress: float | None, metrics: dict[str, float]
) -> None:
    (tmp_path / "progress").write_text(content)
    report = Reports(tmp_path / "progress").latest()
    assert (report.progress, report.metrics) == (progress, metrics)


def test_a_fifo_as_progress_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress")
    assert Reports(tmp_path / "progress").latest().progress is None


def test_masks_each_line_of_a_secret(tmp_path: Path) -> None:
    env = {"SSH_PRIVATE_KEY": "-----BEGIN-----\nabcdefghijkl\nmnopqrstuvwx\n-----END-----"}
    mask = Mask(env, "given-default")
    assert mask.apply(b"abcdefghijkl\nmnopqrstuvwx given-default") == b"***\n*** ***"


def test_a_full_disk_truncates_the_log_but_does_not_fail_the_job(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, 1_000_000, Mask({}))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))
    try:
        log.write(b"lost\n")
        log.write(b"lost too\n")
        assert log.last_line == "lost too"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)  # there is room again
    log.close()
    mark = b"[forge] 0 bytes of the log are omitted here: File too large\n"
    assert path.read_bytes() == mark + b"lost\nlost too\n"


class FakeStore:
    def __init__(self) -> None:
        self.bytes = b""
        self.faults: list[str] = []
        self.cancelled = False

    def __call__(self, request: Request) -> Answer:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise Cut
        if fault == "unavailable":
            return as_error(503, "unavailable")
        start = int(request.headers["content-range"].split()[1].split("-")[0])
        if fault == "loses bytes":
            self.bytes = self.bytes[:3]
        if start > len(self.bytes):
            return as_error(416, "range", range=f"bytes=0-{len(self.bytes) - 1}")
        self.bytes = self.bytes[:start] + request.body
        if fault == "after":
            raise Cut
        return as_json({"length": len(self.bytes), "cancelled": self.cancelled}, 202)


@pytest.mark.parametrize(
    "faults",
    [[], ["before", "after"], ["", "loses bytes"], ["after", "unavailable", "loses bytes"]],
)
def test_uploads_the_whole_log_despite_failures(
    server: ScriptedServer,
    control_plane: ControlPlane,
    lease: Lease,
    tmp_path: Path,
    faults: list[str],
) -> None:
    store = server.script = FakeStore()
    store.faults = faults
    path = tmp_path / "log"
    path.write_bytes(b"first\n")
    sender = LogSender(control_plane, lease, LogFile(path, 10_000_000, Mask({})).read)
    sender.start()
    with path.open("ab") as file:
        file.write(b"x" * 600_000 + b"\nlast\n")
    sender.finish()
    assert store.bytes == path.read_bytes()


def test_does_not_retry_forever_if_the_store_keeps_nothing(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 2_000_000)
    server.script = lambda _: as_error(416, "range_not_satisfiable")
    sender = LogSender(control_plane, lease, LogFile(path, 10_000_000, Mask({})).read)
    sender.start()
    time.sleep(0.5)
    lease.stop("lost")
    sender.finish()
    assert len(server.requests) < 20


def test_stops_the_lease_on_cancel_and_still_uploads_the_rest(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    store = server.script = FakeStore()
    store.cancelled = True
    path = tmp_path / "log"
    path.write_bytes(b"first\n")
    sender = LogSender(control_plane, lease, LogFile(path, 10_000_000, Mask({})).read)
    sender.start()
    sender.finish()
    assert lease.why_stopped == "cancelled"
    assert store.bytes == b"first\n"
