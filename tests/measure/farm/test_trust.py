"""A farm listens only to holders of its certificate.

Each attack is tried on a farm without TLS too, where it works, so that it is known to be one.
"""

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from commands import without_progress
from distributed.protocol import ToPickle, dumps
from distributed.protocol.utils import pack_frames
from distributed.utils import get_ip
from farm_site import Site, free_port, told, wait_until

from irgym.base.errors import FarmError
from irgym.cli.main import main
from irgym.measure.farm import members
from irgym.measure.farm.certificate import make_certificate
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.farm.endpoint import Endpoint
from irgym.measure.isolation.protocol import Limits, Returned


class Evil:
    """An object that writes a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def evil_words(file: Path) -> bytes:
    """Return the first message of a Dask connection, with a pickle in it that writes a file."""
    message = {"compression": None, "python": (3, 11, 0), "pickle-protocol": 5, "evil": ToPickle(Evil(file))}
    packed = pack_frames(list(dumps(message)))
    return struct.pack("Q", len(packed)) + packed


def stranger(certificate: Path | None, purpose: int) -> ssl.SSLContext:
    """Return TLS settings that trust anyone, optionally with a certificate."""
    context = ssl.SSLContext(purpose)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of another farm."""
    path = tmp_path_factory.mktemp("other") / "farm.pem"
    make_certificate(path)
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A scheduler and a worker that trust anyone, on this machine's network."""
    opened = Site(tmp_path_factory.mktemp("bare"))
    opened.endpoint = Endpoint(get_ip(), free_port(), None)
    try:
        opened.serve()
        opened.workers("anna")
        yield opened
    finally:
        opened.close()


def listening(process: subprocess.Popen[str]) -> list[tuple[str, int]]:
    """Return the addresses on which a process and its children listen."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    ports = [port for member in family for port in member.net_connections("inet")]
    return [
        tuple(port.laddr)
        for port in ports
        if port.status == psutil.CONN_LISTEN or port.type != socket.SOCK_STREAM
    ]


def test_scheduler_and_workers_have_one_port_each_on_one_interface(shared: Site):
    scheduler, *workers = shared.processes
    assert listening(scheduler) == [("127.0.0.1", shared.endpoint.port)]
    for worker in workers:
        [(host, _)] = listening(worker)
        assert host == "127.0.0.1"


def test_there_are_no_web_pages(shared: Site, bare: Site):
    for process in (*shared.processes, *bare.processes):
        [place] = listening(process)
        with socket.create_connection(place, 10) as connection:
            connection.sendall(b"GET /json/identity.json HTTP/1.0\r\n\r\n")
            assert b"HTTP" not in everything(connection)


def everything(connection: socket.socket) -> bytes:
    """Return the data that a peer sends before closing the connection."""
    words = b""
    with suppress(ConnectionError, ssl.SSLError):
        while more := connection.recv(1 << 16):
            words += more
    return words


@pytest.mark.parametrize("role", ["scheduler", "worker"])
@pytest.mark.parametrize("how", ["plain", "nameless", "of another farm"])
def test_a_client_without_the_certificate_gets_and_runs_nothing(
    role: str, how: str, shared: Site, bare: Site, other: Path, tmp_path: Path
):
    place = 0 if role == "scheduler" else 1
    [attacked] = listening(bare.processes[place])
    with socket.create_connection(attacked, 10) as connection:
        connection.sendall(evil_words(tmp_path / "bare"))
        assert b"pickle-protocol" in connection.recv(1 << 16)
        wait_until((tmp_path / "bare").exists)
    [attacked] = listening(shared.processes[place])
    with socket.create_connection(attacked, 10) as connection:
        if how != "plain":
            context = stranger(other if how == "of another farm" else None, ssl.PROTOCOL_TLS_CLIENT)
            connection = context.wrap_socket(connection)
        with connection:
            with suppress(OSError):  # it has hung up already
                connection.sendall(evil_words(tmp_path / "evil"))
            assert b"pickle-protocol" not in everything(connection)
    assert not (tmp_path / "evil").exists()


class Impostor:
    """A server that answers any peer with a pickle that writes a file."""

    def __init__(self, file: Path, tls: ssl.SSLContext | None, port: int = 0):
        self._words, self._tls = evil_words(file), tls
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        self.asked = 0
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection, _ = self._server.accept()
                self.asked += 1
                connection.settimeout(1.0)
                with connection, suppress(OSError):
                    self._say(connection)

    def _say(self, connection: socket.socket) -> None:
        if self._tls is None:
            connection.sendall(self._words)
            everything(connection)
        else:
            with self._tls.wrap_socket(connection, server_side=True) as secret:
                secret.sendall(self._words)
                everything(secret)

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()


def ask(site: Site, *arguments: str) -> str:
    """Run a command that fails with one sentence, and return the sentence."""
    process = site.start(*arguments)
    assert process.wait(60) == 2
    errors = site.errors(process)
    assert errors.startswith("irgym: ") and errors.count("\n") == 1, errors
    return errors


@pytest.mark.parametrize("how", ["plain", "of another farm"])
def test_a_hostile_scheduler_runs_nothing(
    how: str, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file, certificate = tmp_path / "evil", tmp_path / "farm.pem"
    make_certificate(certificate)
    context = None if how == "plain" else stranger(other, ssl.PROTOCOL_TLS_SERVER)
    words = "prove by TLS that it is your farm" if how == "plain" else "copy that of the farm there"
    with closing(Impostor(file, context)) as impostor:
        endpoint = Endpoint("127.0.0.1", impostor.port, certificate)
        for command in (
            ("farm", "status", endpoint.address),
            ("worker", endpoint.address, "--timeout-s", "60"),
            ("tune", "loops://mm/8x8x8", "--farm", endpoint.address),
        ):
            asked = impostor.asked
            with pytest.raises(SystemExit) as end:
                main([*command])
            said = without_progress(capsys.readouterr().err)
            assert end.value.code == 2 and said.startswith("irgym: ") and said.count("\n") == 1, said
            assert words in said
            assert impostor.asked > asked and not file.exists()


@pytest.mark.parametrize("words", [b"", bytes(range(256)) * 64, bytes(10_000), b"\5" + bytes(7) + b"hello"])
def test_a_listener_that_is_no_scheduler_is_refused_in_one_sentence(
    words: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(members, "ANSWER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []
        threading.Thread(target=greeted, args=(server, words, connections), daemon=True).start()
        endpoint = Endpoint("127.0.0.1", server.getsockname()[1], None)
        with pytest.raises(FarmError, match="no farm without TLS has answered"):
            DaskFarm(endpoint, Limits(), patience_s=0.1)
    for connection in connections:
        connection.close()


def greeted(server: socket.socket, words: bytes, connections: list[socket.socket]) -> None:
    """Send some bytes to all peers, and keep the connections open."""
    with suppress(OSError):  # the server was closed
        while True:
            connection, _ = server.accept()
            connections.append(connection)
            connection.sendall(words)


def test_a_hostile_scheduler_runs_code_on_clients_that_trust_everybody(site: Site):
    file = site.folder / "evil"
    with closing(Impostor(file, None)) as impostor:
        process = site.start("farm", "status", f"dask://127.0.0.1:{impostor.port}", "--insecure")
        wait_until(file.exists)
        process.kill()


def test_plain_tcp_only_where_it_is_asked_for(bare: Site, planted):
    address = str(bare.endpoint)
    assert "does not prove by TLS" in ask(
        bare, "farm", "status", address, "--certificate", str(bare.certificate)
    )
    with pytest.raises(FarmError, match="does not prove by TLS"):
        DaskFarm(Endpoint(bare.endpoint.host, bare.endpoint.port, bare.certificate), Limits())
    assert bare.start("farm", "status", address, "--insecure").wait(60) == 0
    with DaskFarm(bare.endpoint, Limits()) as farm:
        assert farm.run([planted("double", 4)]) == [Returned(8)]


def test_a_farm_with_tls_does_not_speak_without(shared: Site):
    place = f"dask://127.0.0.1:{shared.endpoint.port}"
    assert "no farm without TLS" in ask(shared, "farm", "status", f"{place}?insecure=1")
    with pytest.raises(FarmError, match="no farm without TLS"):
        DaskFarm(Endpoint("127.0.0.1", shared.endpoint.port, None), Limits(), patience_s=0.5)


def test_a_server_that_says_nothing(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(members, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint("127.0.0.1", server.getsockname()[1], site.certificate)
        with pytest.raises(FarmError, match="no farm has answered"):
            DaskFarm(endpoint, Limits(), patience_s=0.3)


def test_a_worker_waits_for_its_farm_while_another_has_its_place(site: Site, other: Path):
    scheduler = site.serve()
    [worker] = site.workers("anna")
    scheduler.terminate()
    scheduler.wait()
    file = site.folder / "evil"
    context = stranger(other, ssl.PROTOCOL_TLS_SERVER)
    with closing(Impostor(file, context, site.endpoint.port)) as impostor:
        wait_until(lambda: impostor.asked > 2)
    assert worker.poll() is None and not file.exists()
    site.serve()
    told(worker, "works for")
