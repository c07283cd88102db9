"""This machine as a target, and targets by name."""

import platform
from functools import cache
from pathlib import Path

from irgym.base.errors import BackendError
from irgym.core.target import LEVELS, Cache, Target
from irgym.measure.machine import Machine, fingerprint, sysctl, timing_core

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Architectures by the names that some systems have for those of `LEVELS`."""

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def host_target() -> Target:
    """Return this machine as a target: its widest instruction set, its caches and its cores.

    Where cores differ, the caches are those of the timing core.
    """
    machine = fingerprint()
    caches = caches_macos() if platform.system() == "Darwin" else caches_linux(timing_core() or 0)
    return target_of_machine(machine, caches)


def target_of_machine(machine: Machine, caches: tuple[Cache, ...]) -> Target:
    """Return the widest level that a machine supports, or its architecture if that has no levels."""
    architecture = machine.architecture.lower()
    architecture = ARCHITECTURES.get(architecture, architecture)
    levels = [level for level in LEVELS if level.architecture == architecture]
    # Every processor supports the lowest level of its architecture, even if the system lists no features.
    generic = levels[-1] if levels else Target(architecture, architecture, (), 128, 16)
    widest = next((level for level in levels if not _missing(level, machine)), generic)
    return widest.on(Target("", "", (), 0, 0, caches, machine.cores))


def _missing(level: Target, machine: Machine) -> list[str]:
    return [feature for feature in level.features if feature not in machine.features]


def caches_linux(core: int, devices: Path = Path("/sys/devices")) -> tuple[Cache, ...]:
    """Return the data caches of a core, the nearest first; empty if Linux does not list them.

    Args:
        core: Number of the core.
        devices: Linux's folder of devices.
    """
    found: list[Cache] = []
    for index in sorted(devices.glob(f"system/cpu/cpu{core}/cache/index[0-9]*")):

        def read(name: str, index: Path = index) -> str:
            path = index / name
            return path.read_text().strip() if path.exists() else ""

        if read("type") != "Instruction" and read("level") and read("size"):
            found.append(
                Cache(
                    int(read("level")),
                    _bytes(read("size")),
                    int(read("coherency_line_size") or 0),
                    int(read("ways_of_associativity") or 0),
                )
            )
    return tuple(sorted(found, key=lambda cache: cache.level))


def _bytes(size: str) -> int:
    """Return a size in Linux's notation, such as `48K`, in bytes."""
    unit = UNITS.get(size[-1].upper())
    return int(size[:-1]) * unit if unit else int(size)


def caches_macos() -> tuple[Cache, ...]:
    """Return the data caches of a (fast) core on macOS, which does not list their associativity."""
    line = int(sysctl("hw.cachelinesize") or 0)
    names = ("l1dcachesize", "l2cachesize", "l3cachesize")
    sizes = [int(sysctl(f"hw.perflevel0.{name}") or sysctl(f"hw.{name}") or 0) for name in names]
    return tuple(Cache(level, size, line) for level, size in enumerate(sizes, start=1) if size)


def target_named(name: str, runs: bool = True) -> Target:
    """Return an instruction set by name, with the caches and cores of this machine.

    Args:
        name: Name of the level, such as `x86-64-v3`.
        runs: Whether the code has to run here.

    Raises:
        BackendError: There is no such level, or the code has to run and this processor does not support it.
    """
    host = host_target()
    known = {level.name: level for level in (*LEVELS, host)}
    if name not in known:
        raise BackendError(f"there is no target {name!r}: choose among {', '.join(known)}")
    target = known[name].on(host)
    if runs:
        require(target)
    return target


def require(target: Target) -> None:
    """Check that this processor can run the code of a target.

    Raises:
        BackendError: It cannot.
    """
    host, machine = host_target(), fingerprint()
    if runs_here(target):
        return
    levels = [level.name for level in LEVELS if level.architecture == host.architecture]
    fitting = levels[levels.index(host.name) :] if host.name in levels else [host.name]
    lacks = f"it is {host.architecture}"
    if target.architecture == host.architecture:
        lacks = f"it lacks {', '.join(_missing(target, machine))}"
    raise BackendError(
        f"this processor does not run code for {target.name} ({lacks}): choose {' or '.join(fitting)}"
    )


def runs_here(target: Target) -> bool:
    """Say whether this processor can run the code of a target."""
    host = host_target()
    same = target.architecture == host.architecture and not _missing(target, fingerprint())
    return same or target.name == host.name


def target_of(target: Target | str | None, runs: bool = True) -> Target:
    """Return a target given as such, by name, or as None for this machine.

    Raises:
        BackendError: There is no such target, or the code has to run and this processor does not support it.
    """
    if target is None:
        return host_target()
    if isinstance(target, str):
        return target_named(target, runs)
    if runs:
        require(target)
    return target
