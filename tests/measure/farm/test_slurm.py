"""SLURM: the options, the job's script, and a farm of jobs that a stand-in for SLURM starts."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from distributed.utils import get_ip
from farm_site import wait_until

from irgym.base.errors import BackendError, FarmError
from irgym.measure.farm import open_farm
from irgym.measure.farm.certificate import make_certificate
from irgym.measure.farm.slurm import SlurmFarm, SlurmOptions, cluster_of, parse_slurm
from irgym.measure.isolation.protocol import Limits, Returned

SBATCH = """#!/bin/sh
[ $# = 1 ] || exit 1
cp "$1" {folder}/script
setsid sh {folder}/script > {folder}/out 2>&1 &
echo $! > {folder}/job
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill -TERM "-$1"
"""


def test_options():
    assert parse_slurm("slurm") == SlurmOptions()
    assert parse_slurm("slurm?workers=8&cores=2&memory=4GB&walltime=01:00:00&queue=big&patience_s=5") == (
        SlurmOptions(workers=8, cores=2, memory="4GB", walltime="01:00:00", queue="big", patience_s=5.0)
    )


@pytest.mark.parametrize(
    "query",
    [
        "workers=0",
        "workers=many",
        "workers",
        "workers=1&workers=2",
        "colour=red",
        "memory=4",
        "walltime=soon",
        "queue=a b",
        "queue=a%0A%23SBATCH",
        "account=$(reboot)",
        "=",
    ],
)
def test_malformed_options_are_refused_in_one_sentence(query: str):
    with pytest.raises(FarmError) as error:
        parse_slurm(f"slurm?{query}")
    assert "\n" not in str(error.value) and ("write" in str(error.value) or "choose" in str(error.value))


def test_the_script_of_a_job(tmp_path: Path):
    options = SlurmOptions(2, 3, "4GB", "02:00:00", "big", "me", "icelake")
    certificate = tmp_path / "it's $HOME; reboot.pem"
    make_certificate(certificate)
    cluster = cluster_of(options, certificate)
    try:
        script = cluster.job_script()
        address = cluster.scheduler_address.replace("tls", "dask")
    finally:
        cluster.close()
    lines = script.splitlines()
    assert {"#SBATCH -p big", "#SBATCH -A me", "#SBATCH --cpus-per-task=3", "#SBATCH --mem=4G"} <= set(lines)
    assert {"#SBATCH -t 02:00:00", "#SBATCH --constraint=icelake", "#SBATCH -J irgym-worker"} <= set(lines)
    [command] = [shlex.split(line) for line in lines if " -m irgym worker " in line]
    assert command[:6] == [sys.executable, "-m", "irgym", "worker", address, "--name"]
    assert command[-2:] == ["--certificate", str(certificate)]


def test_a_machine_without_slurm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match="no sbatch here: run this on"):
        open_farm("slurm?workers=2", Limits())


def test_jobs_work_and_end_with_the_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (programs / name).write_text(text.format(folder=tmp_path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    with SlurmFarm(SlurmOptions(patience_s=30.0), Limits()) as farm:
        assert farm.workers == 1
        assert farm.run([planted("double", n) for n in range(10)]) == [Returned(2 * n) for n in range(10)]
        assert farm.call(planted("double", 5)) == Returned(10)
        [certificate] = (tmp_path / "config").rglob("*.pem")
        assert certificate.stat().st_mode & 0o777 == 0o600
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in certificate.parents[:2])
        ours = psutil.Process().net_connections("inet")
        listening = [connection.laddr.ip for connection in ours if connection.status == psutil.CONN_LISTEN]
        assert listening == [get_ip()], "one port, in one network"
    assert not list((tmp_path / "config").rglob("*.pem"))
    assert "works for" in (tmp_path / "out").read_text()
    job = int((tmp_path / "job").read_text())
    wait_until(lambda: not psutil.pid_exists(job))


def test_an_interrupt_stays_an_interrupt():
    code = "import signal, irgym.measure.farm.slurm\nsignal.raise_signal(signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "KeyboardInterrupt" in done.stderr
