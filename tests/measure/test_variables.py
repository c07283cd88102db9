import os
import subprocess
import sys

import pytest

from irgym.measure.farm.local import LocalFarm
from irgym.measure.farm.protocol import conditions
from irgym.measure.isolation.protocol import Limits
from irgym.measure.machine import fingerprint
from irgym.measure.variables import SHORT_SPIN, THREADS, for_child, keyed, machine_key


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in os.environ:
        if keyed({name: ""}):
            monkeypatch.delenv(name)


def test_nothing_special_means_the_machine_alone():
    assert machine_key(fingerprint()) == fingerprint().key
    assert keyed({"HOME": "/home/me", "PATH": "/bin", "TF_CLI_CONFIG_FILE": "x", "PYTHONPATH": "y"}) == ""


@pytest.mark.parametrize(
    "name",
    [
        "XLA_FLAGS",
        "TF_XLA_FLAGS",
        "TF_ENABLE_ONEDNN_OPTS",
        "JAX_ENABLE_X64",
        "OMP_PROC_BIND",
        "KMP_BLOCKTIME",
        "MKL_ENABLE_INSTRUCTIONS",
        "ONEDNN_MAX_CPU_ISA",
        "DNNL_MAX_CPU_ISA",
        "ATEN_CPU_CAPABILITY",
        "NPY_DISABLE_CPU_FEATURES",
        "MALLOC_ARENA_MAX",
        "GLIBC_TUNABLES",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
    ],
)
def test_variables_of_toolchains_are_part_of_the_conditions(monkeypatch, name):
    monkeypatch.setenv(name, "one")
    first = LocalFarm().conditions
    monkeypatch.setenv(name, "two")
    second = LocalFarm().conditions
    monkeypatch.delenv(name)
    assert len({first, second, LocalFarm().conditions}) == 3
    assert f"{name}=one" in first and "\n" not in first


def test_variables_of_all_children_or_of_output_alone_are_left_out():
    names = (
        *THREADS,
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "MKL_VERBOSE",
        "TORCH_LOGS",
        "KMP_INIT_AT_FORK",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
    )
    assert keyed(dict.fromkeys(names, "1")) == ""
    assert keyed({"XLA_FLAGS": "a\nb"}) == "XLA_FLAGS='a\\nb'"


def test_a_childs_environment():
    parent = {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "8", "XLA_FLAGS": "x", "A": "1"}
    own = {"A": "2", "MKL_NUM_THREADS": "7", "KMP_BLOCKTIME": "9"}
    assert for_child(parent, 3, own) == {
        "OPENBLAS_NUM_THREADS": "3",
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "7",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "XLA_FLAGS": "x",
        **SHORT_SPIN,
        "KMP_BLOCKTIME": "9",
        "A": "2",
    }
    assert not SHORT_SPIN.keys() & for_child(parent, 1, {}).keys()


def test_the_variables_of_the_limits_count():
    plain, own = Limits(), Limits(environment={"KMP_BLOCKTIME": "0", "IRRELEVANT": "1"})
    assert conditions("machine", own) == f"{conditions('machine', plain)}; KMP_BLOCKTIME=0"


def test_limits_of_the_system_count():
    program = (
        "from irgym.measure.machine import fingerprint\n"
        "from irgym.measure.variables import machine_key; print(machine_key(fingerprint()))"
    )
    limited = ["sh", "-c", 'ulimit -t 1234; exec "$@"', "sh"]
    said = subprocess.check_output([*limited, sys.executable, "-c", program], text=True)
    assert said.strip() == f"{machine_key(fingerprint())}; ulimit -t 1234"
