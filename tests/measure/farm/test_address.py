"""Addresses, sizes of batches, and the imports that they need, without processes of a farm."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import BackendError, FarmError
from irgym.measure.farm import LocalFarm, open_farm
from irgym.measure.farm.batch import BATCH_S, LARGEST, LEAST_S, batch_size
from irgym.measure.farm.endpoint import Endpoint, parse_endpoint, parse_listening
from irgym.measure.isolation.protocol import Limits

MALFORMED = [
    "",
    "here",
    "local:",
    "local:0",
    "local:two",
    "local:-1",
    "dask:",
    "dask://",
    "dask://host",
    "dask://host:",
    "dask://host:0",
    "dask://host:65536",
    "dask://host:port",
    "dask://:8786",
    "dask://a b:8786",
    "dask://host:8786/",
    "dask://host:8786?insecure=0",
    "dask://host:8786?certificate=",
    "dask://host:8786?certificate",
    "dask://host:8786?certificate=a%00b",
    "dask://0.0.0.0:٣",
    "tcp://host:8786",
    "slurms",
]


@pytest.mark.parametrize("address", MALFORMED)
def test_malformed_addresses_are_refused_in_one_sentence(address: str):
    with pytest.raises(FarmError, match=r"write .*dask://HOST:PORT") as error:
        open_farm(address, Limits())
    assert "\n" not in str(error.value) and repr(address) in str(error.value)


@pytest.mark.parametrize(("address", "workers"), [(None, 1), ("local", 1), ("local:1", 1), ("local:3", 3)])
def test_local_addresses(address: str | None, workers: int):
    farm = open_farm(address, Limits())
    assert isinstance(farm, LocalFarm) and farm.workers == workers


@pytest.mark.parametrize(
    "text",
    [
        "dask://host:8786",
        "dask://10.0.0.1:1",
        "dask://[fe80::1]:65535",
        "dask://host:1?insecure=1",
        "dask://host:1?certificate=/a%20folder/%3F.pem",
    ],
)
def test_endpoints_parse_back(text: str):
    endpoint = parse_endpoint(text)
    assert endpoint.address == text
    place = text.partition("?")[0]
    assert str(endpoint) == place
    assert endpoint.url == place.replace("dask", "tcp" if "insecure" in text else "tls")


def test_a_farm_has_the_users_certificate_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    own, file = Path("/config/irgym/farm.pem"), Path("/other.pem")
    assert parse_endpoint("dask://host:1") == Endpoint("host", 1, own) == parse_endpoint("dask://host:1", own)
    assert parse_endpoint("dask://host:1?certificate=/other.pem") == parse_endpoint("dask://host:1", file)
    assert parse_endpoint("dask://host:1?insecure=1") == parse_endpoint("dask://host:1", insecure=True)
    assert parse_endpoint("dask://host:1", insecure=True).certificate is None
    assert parse_endpoint("dask://host:1", Path("a.pem")).certificate == Path.cwd() / "a.pem"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert parse_listening("1").certificate == Path.home() / ".config" / "irgym" / "farm.pem"


@pytest.mark.parametrize(
    "query", ["", "?insecure=1", "?certificate=/a.pem", "?certificate=/a.pem&insecure=1"]
)
def test_options_that_exclude_each_other(query: str):
    for certificate, insecure in ((Path("/b.pem"), False), (None, True), (Path("/b.pem"), True)):
        if query or (certificate and insecure):
            with pytest.raises(FarmError, match="leave out"):
                parse_endpoint(f"dask://host:1{query}", certificate, insecure)


@pytest.mark.parametrize("query", ["insecure=1&insecure=1", "colour=red"])
def test_options_that_are_none(query: str):
    with pytest.raises(FarmError, match="choose among certificate, insecure"):
        open_farm(f"dask://host:1?{query}", Limits())


def test_commands_that_sentences_name():
    assert Endpoint("127.0.0.1", 1).serving == "irgym farm serve 1"
    assert Endpoint("host", 1, None).serving == "irgym farm serve host:1 --insecure"
    assert Endpoint("host", 1, Path("/a b")).working == "irgym worker dask://host:1 --certificate '/a b'"


def test_a_scheduler_listens_on_this_machine_unless_told_otherwise():
    assert parse_listening("8786") == Endpoint("127.0.0.1", 8786)
    assert parse_listening("10.0.0.1:1", insecure=True) == Endpoint("10.0.0.1", 1, None)
    for text in ("", "x", ":1", "0", "host", "host:", "host:1?insecure=1"):
        with pytest.raises(FarmError, match="write PORT"):
            parse_listening(text)


@pytest.mark.parametrize("address", ["dask://host:8786", "slurm"])
def test_missing_libraries_are_named(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"pip install 'irgym\[farm\]'"):
        open_farm(address, Limits())


def test_dask_is_imported_for_a_farm_only():
    program = (
        "import sys; import irgym.cli.main, irgym.measure.bench;"
        "heavy = {'dask', 'distributed', 'dask_jobqueue'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@given(st.integers(0, 10**4), st.integers(1, 100), st.floats(0.0, 1e3))
def test_batches_are_neither_long_nor_last(waiting: int, workers: int, call_s: float):
    size = batch_size(waiting, workers, call_s)
    assert 1 <= size <= LARGEST
    assert size == 1 or size * call_s <= BATCH_S * 1.001
    assert size == 1 or size <= waiting
    assert size == 1 or size * workers <= waiting / 2 or size * call_s <= LEAST_S * 1.001


def test_batches_use_the_time_they_have():
    assert batch_size(1000, 2, 0.0) == LARGEST
    assert batch_size(1000, 2, BATCH_S / 10) == 10
    assert batch_size(1000, 2, 1.0) == batch_size(3, 2, LEAST_S) == 1
    assert batch_size(8, 2, LEAST_S / 8) == 8
