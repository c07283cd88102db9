"""Workers as read from a scheduler's identity."""

import asyncio
import socket
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from irgym.base.errors import FarmError
from irgym.measure.farm.certificate import make_certificate
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.farm.members import (
    TAG,
    Activity,
    Kind,
    Member,
    members_at,
    members_of,
    own_kind,
    queue_length,
)
from irgym.measure.machine import fingerprint
from irgym.measure.variables import machine_key

KIND = Kind("0.1+abc", "x86_64-1", "a machine")


def worker(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "host": "10.0.0.1", "metrics": {}, TAG: asdict(KIND)} | more


def test_members_are_irgyms_workers_by_name():
    plain = worker("dask")
    del plain[TAG]
    activity = Activity(done=3, rate=0.5)
    busy = worker("a", metrics={TAG: asdict(activity)})
    identity = {"workers": {"tcp://1": worker("b"), "tcp://2": plain, "tcp://3": busy}}
    assert members_of(identity) == [
        Member("a", "10.0.0.1", KIND, activity),
        Member("b", "10.0.0.1", KIND, Activity()),
    ]


@pytest.mark.parametrize("tls", [True, False])
def test_a_port_where_a_web_server_answers(tls: bool, tmp_path: Path):
    certificate = tmp_path / "farm.pem"
    make_certificate(certificate)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            for _ in range(2):
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                    connection.recv(1 << 16)

        threading.Thread(target=answer, daemon=True).start()
        endpoint = Endpoint("127.0.0.1", server.getsockname()[1], certificate if tls else None)
        words = "does not prove by TLS" if tls else f"no farm without TLS answers at {endpoint}"
        with pytest.raises(FarmError, match=words):
            asyncio.run(members_at(endpoint))


def test_the_queue_counts_what_each_run_last_held_back():
    def at(run: str, waiting: int) -> Member:
        return Member("w", "h", KIND, Activity(run=run, waiting=waiting, running=1))

    assert queue_length([]) == 0
    assert queue_length([at("r", 10), at("r", 8), at("s", 5), at("", 0)]) == 13


def test_kinds_differ_by_machine_and_irgym_and_not_by_text():
    own = own_kind()
    assert own.machine == machine_key(fingerprint())
    assert replace(own, text="?").resource == own.resource
    assert len({own.resource, replace(own, machine="m").resource, replace(own, irgym="0").resource}) == 3
