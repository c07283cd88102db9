"""This machine as a target, from planted files."""

from dataclasses import replace
from pathlib import Path

import pytest

from irgym.base.errors import BackendError
from irgym.core.target import X86_64_V3, X86_64_V4, Cache
from irgym.measure import machine, target
from irgym.measure.machine import Machine, fingerprint
from irgym.measure.target import (
    caches_linux,
    caches_macos,
    host_target,
    target_named,
    target_of,
    target_of_machine,
)

V2 = "fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt"
HASWELL = f"{V2} avx f16c fma movbe xsave abm bmi1 avx2 bmi2"
SKYLAKE = f"{HASWELL} avx512f avx512dq avx512cd avx512bw avx512vl"


def planted(tmp_path: Path, monkeypatch, flags: str, architecture: str = "x86_64", cores: int = 4) -> Machine:
    """Return a machine with the given flags in /proc/cpuinfo."""
    name = "flags" if architecture == "x86_64" else "Features"
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nvendor_id : Someone\n{name} : {flags}\n\nprocessor : 1\n{name} : \n")
    with monkeypatch.context() as patch:
        patch.setattr(machine, "Path", lambda _: cpuinfo)
        _, _, _, features = machine._cpu_linux()
    return replace(fingerprint(), features=features, architecture=architecture, cores=cores)


def plant_caches(devices: Path, core: int, *caches: tuple[int, str, str, int, int]) -> None:
    for number, (level, kind, size, line, ways) in enumerate(caches):
        index = devices / f"system/cpu/cpu{core}/cache/index{number}"
        index.mkdir(parents=True)
        values = {"level": level, "type": kind, "size": size, "coherency_line_size": line}
        for name, value in {**values, "ways_of_associativity": ways}.items():
            (index / name).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("flags", "architecture", "name"),
    [
        (HASWELL, "x86_64", "x86-64-v3"),
        (SKYLAKE, "x86_64", "x86-64-v4"),
        (f"{HASWELL} avx512f avx512cd avx512er avx512pf", "x86_64", "x86-64-v3"),  # Knights Landing
        (HASWELL.replace(" bmi2", ""), "x86_64", "x86-64"),
        (V2, "x86_64", "x86-64"),
        ("", "AMD64", "x86-64"),  # Windows names no features
        ("fp asimd evtstrm aes", "aarch64", "aarch64"),
        ("asimd", "arm64", "aarch64"),
        ("", "riscv64", "riscv64"),
    ],
)
def test_the_widest_level_that_a_machine_has(tmp_path, monkeypatch, flags, architecture, name):
    caches = (Cache(1, 32768, 64, 8),)
    found = target_of_machine(planted(tmp_path, monkeypatch, flags, architecture), caches)
    assert (found.name, found.caches, found.cores) == (name, caches, 4)


def test_caches_that_hold_data_are_read(tmp_path):
    l1, l2, l3 = (1, "Data", "48K", 64, 12), (2, "Unified", "2M", 64, 16), (3, "Unified", "36864K", 64, 12)
    plant_caches(tmp_path, 0, l1, (1, "Instruction", "32K", 64, 8), l2, l3)
    assert caches_linux(0, tmp_path) == (
        Cache(1, 48 << 10, 64, 12),
        Cache(2, 2 << 20, 64, 16),
        Cache(3, 36 << 20, 64, 12),
    )


def test_the_caches_of_a_hybrid_are_those_of_the_core_that_is_timed_on(tmp_path):
    plant_caches(tmp_path, 0, (1, "Data", "48K", 64, 12), (2, "Unified", "1280K", 64, 10))
    plant_caches(tmp_path, 19, (1, "Data", "32K", 64, 8), (2, "Unified", "4096K", 64, 16))
    assert [cache.size for cache in caches_linux(19, tmp_path)] == [32 << 10, 4 << 20]


def test_a_system_that_tells_nothing_of_caches_has_none(tmp_path):
    assert caches_linux(0, tmp_path) == ()
    index = tmp_path / "system/cpu/cpu0/cache/index0"
    index.mkdir(parents=True)
    (index / "level").write_text("1\n")
    assert caches_linux(0, tmp_path) == (), "its size is missing"


def test_a_cache_whose_ways_are_not_told(tmp_path):
    index = tmp_path / "system/cpu/cpu0/cache/index0"
    index.mkdir(parents=True)
    for name, value in {"level": "1", "type": "Data", "size": "64K"}.items():
        (index / name).write_text(value)
    assert caches_linux(0, tmp_path) == (Cache(1, 64 << 10),)


def test_macos_tells_the_sizes_of_fast_cores(monkeypatch):
    values = {
        "hw.cachelinesize": "128",
        "hw.l1dcachesize": "65536",
        "hw.l2cachesize": "4194304",
        "hw.perflevel0.l1dcachesize": "131072",
        "hw.perflevel0.l2cachesize": "12582912",
    }
    monkeypatch.setattr(target, "sysctl", lambda name: values.get(name, ""))
    assert caches_macos() == (Cache(1, 131072, 128), Cache(2, 12582912, 128))
    for name in [name for name in values if "perflevel0" in name]:
        del values[name]
    assert caches_macos() == (Cache(1, 65536, 128), Cache(2, 4194304, 128))


def test_macos_on_intel_has_its_level(monkeypatch):
    values = {
        "machdep.cpu.features": "FPU SSE2 FMA MOVBE XSAVE AVX1.0 F16C",
        "machdep.cpu.leaf7_features": "BMI1 AVX2 BMI2",
        "machdep.cpu.extfeatures": "SYSCALL LZCNT",
    }
    monkeypatch.setattr(machine, "sysctl", lambda name: values.get(name, ""))
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    features = machine._cpu_macos()[3]
    here = replace(fingerprint(), features=features, architecture="x86_64")
    assert target_of_machine(here, ()).name == "x86-64-v3"


def test_this_machine():
    found = host_target()
    assert found.cores == fingerprint().cores
    assert target_named(found.name) == found == target_of(None) == target_of(found.name) == target_of(found)


def haswell(tmp_path, monkeypatch):
    here = planted(tmp_path, monkeypatch, HASWELL)
    found = target_of_machine(here, (Cache(1, 32768, 64, 8),))
    monkeypatch.setattr(target, "fingerprint", lambda: here)
    monkeypatch.setattr(target, "host_target", lambda: found)
    return found


def test_a_level_that_the_processor_lacks_is_refused(tmp_path, monkeypatch):
    host = haswell(tmp_path, monkeypatch)
    lacks = (
        r"^this processor does not run code for x86-64-v4 \(it lacks avx512f, avx512bw, .*\): "
        r"choose x86-64-v3 or x86-64$"
    )
    for given in ("x86-64-v4", X86_64_V4):
        with pytest.raises(BackendError, match=lacks):
            target_of(given)
    with pytest.raises(BackendError, match=r"aarch64 \(it is x86_64\)"):
        target_named("aarch64")
    assert target_named("x86-64-v4", runs=False) == X86_64_V4.on(host)
    assert target_named("x86-64-v3") == X86_64_V3.on(host) == host


def test_an_unknown_name_is_refused():
    with pytest.raises(BackendError, match=r"no target 'x86-64-v9': choose among x86-64-v4, x86-64-v3"):
        target_named("x86-64-v9", runs=False)
