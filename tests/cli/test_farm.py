"""The commands of a farm, and commands that measure on one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("irgym.measure.farm.slurm")  # by way of it: dask_jobqueue itself takes over SIGINT
from commands import Command
from farm_site import Site, wait_until

PASSES = "passes://mlp/40-0-20-0-0-7-0-0"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    opened = Site(tmp_path_factory.mktemp("site"))
    try:
        opened.serve()
        opened.workers("anna")
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("uri", [PASSES, "loops://mm/16x16x16"])
def test_tune_on_a_farm(irgym: Command, site: Site, tmp_path: Path, uri: str):
    search = ("--search", "random", "--evaluations", "8", "--objective", "time")
    code, out, _ = irgym("tune", uri, *search, "--farm", site.endpoint.address, "--json", tmp_path / "t.json")
    assert code == 0, out
    data = json.loads((tmp_path / "t.json").read_text())
    assert data["validated"] and data["evaluations"] == 8
    assert (
        irgym("replay", uri, data["schedule"], "--farm", site.endpoint.address, "--objective", "time")[0] == 0
    )
    assert json.loads(_stats(irgym, tmp_path))["rows"] >= 8


def _stats(irgym: Command, folder: Path) -> str:
    irgym("cache", "stats", "--json", folder / "stats.json")
    return (folder / "stats.json").read_text()


def test_train_and_evaluate_on_a_farm(irgym: Command, site: Site, tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    settings = ("--objective", "time", "--set", "episodes=4", "hidden=8", "--farm", site.endpoint.address)
    assert irgym("train", "passes", "--run", run, "--iterations", "1", *settings)[0] == 0
    assert irgym("evaluate", run, "--limit", "1", "--farm", site.endpoint.address)[0] == 0
    compared = ("--programs", PASSES, "--evaluations", "8", "--objective", "time", "--farm", "local:2")
    assert irgym("compare", "passes", "--methods", "base,random", *compared)[0] == 0


def test_the_status_shows_workers_and_what_they_did(irgym: Command, site: Site, tmp_path: Path):
    def status() -> dict[str, object]:
        code, out, _ = irgym("farm", "status", site.endpoint.address, "--json", tmp_path / "s.json")
        assert code == 0 and "anna" in out and "1 workers; 0 calls wait" in out
        [worker] = json.loads((tmp_path / "s.json").read_text())["workers"]
        assert worker["name"] == "anna" and worker["host"] == "127.0.0.1" and worker["kind"]["machine"]
        return worker["activity"]

    before = status()["done"]
    search = (
        "--search",
        "random",
        "--evaluations",
        "4",
        "--objective",
        "time",
        "--farm",
        site.endpoint.address,
    )
    assert irgym("tune", PASSES, *search)[0] == 0
    wait_until(lambda: status()["done"] > before)
    assert status()["rate"] > 0 and status()["failed"] == 0


BAD = {
    ("farm", "status", "dask://127.0.0.1:1?insecure=1"): "irgym farm serve 1",
    ("farm", "status", "127.0.0.1"): "write dask://HOST:PORT",
    ("farm", "serve", "everywhere"): "write PORT",
    ("farm", "serve", "no.such.host.invalid:8786"): "another port or host",
    ("farm", "serve", "a..b:8786", "--insecure"): "another port or host",
    ("farm", "status", "dask://a..b:8786?insecure=1"): "irgym farm serve a..b:8786 --insecure",
    ("farm", "serve", "0.0.0.0:8786"): "name the one that the workers are in",
    ("farm", "serve", "0:8786", "--insecure"): "name the one that the workers are in",
    ("farm", "serve", "[::]:8786"): "name the one that the workers are in",
    ("farm", "serve", "1", "--insecure", "--certificate", "x"): "leave out one option",
    ("farm", "serve", "1", "--certificate", "/dev/null/farm.pem"): "name another",
    ("farm", "serve", "1", "--certificate", "/dev/null"): "no regular file",
    ("farm", "status", "dask://127.0.0.1:1", "--certificate", "absent.pem"): "irgym farm serve makes it",
    ("worker", "dask://127.0.0.1:1?certificate=absent.pem"): "irgym farm serve makes it",
    ("tune", PASSES, "--objective", "time", "--farm", "dask://127.0.0.1:1?certificate=/"): "no regular file",
    ("worker", "here"): "write dask://HOST:PORT",
    ("worker", "dask://127.0.0.1:1", "--insecure", "--timeout-s", "0"): "more than 0",
    ("tune", PASSES, "--farm", "there"): "dask://HOST:PORT",
    ("compare", "passes", "--farm", "local:0"): "local:4",
    ("train", "passes", "--run", "x", "--farm", "slurm?colour=red"): "choose among workers",
    ("imitate", "passes", "--out", "x", "--farm", "dask://"): "write dask://HOST:PORT",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_options(
    arguments: tuple[str, ...], irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    code, _, err = irgym(*arguments)
    assert code == 2 and err.startswith("irgym: ") and err.count("\n") == 1, err
    assert BAD[arguments] in err
