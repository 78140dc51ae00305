"""The client's release header, and the server's minimum release."""

import warnings

import pytest
from sdk_support import Answer, FakeForge

from forge import Forge, OutdatedClientWarning, __version__
from forge.release import is_older

PING = b'{"ok": true, "user_id": "u", "key_id": "k", "scope": "user"}'


def answering(server: FakeForge, minimum: str) -> None:
    headers = {"Content-Type": "application/json", "X-Forge-Min-Client": minimum}
    server.script = lambda _: Answer(200, PING, headers)


def test_each_request_has_the_release(server: FakeForge, client: Forge) -> None:
    answering(server, "0.1.0")
    client.service.ping()
    assert server.requests[0].headers["x-forge-client"] == f"sdk-python/{__version__}"


def test_an_outdated_client_warns_once_and_works(server: FakeForge, client: Forge) -> None:
    answering(server, "99.1.0")
    with pytest.warns(OutdatedClientWarning, match=r"older than this server supports: .* 99\.1\.0"):
        assert client.service.ping().ok
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.service.ping().ok


@pytest.mark.parametrize("minimum", ["0.0.1", __version__, "soon", "", "1"])
def test_does_not_warn_if_recent_enough(server: FakeForge, client: Forge, minimum: str) -> None:
    answering(server, minimum)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.service.ping()


def test_versions_are_compared_by_number() -> None:
    assert is_older("0.9.0", "0.10.0")
    assert is_older("0.2.9", "1.0.0")
    assert not is_older("1.0.0", "1.0.0")
    assert not is_older("1.0.1-rc1", "1.0.0")
