"""The measuring machine: its identity, its load, and exclusive use of the timing cores."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from irgym.base.errors import BackendError
from irgym.measure.locks import lock, lock_aloud, lock_file, try_lock

GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """Properties of a machine on which measured times depend.

    Attributes:
        vendor: Maker of the CPU, as it names itself: `GenuineIntel`.
        model: Name of the CPU.
        family: Family, model and stepping numbers, joined by `-`; empty where unknown.
        features: Instruction-set flags enabled by the system, in lower case: `avx512f`.
        cores: Logical cores.
        memory_gib: Main memory, rounded to whole GiB.
        system: Operating system: `Linux`.
        architecture: Instruction set: `x86_64`.
        core: Kind of the timing core on a machine with several kinds: `atom`; otherwise empty.
    """

    vendor: str
    model: str
    family: str
    features: frozenset[str]
    cores: int
    memory_gib: int
    system: str
    architecture: str
    core: str = ""

    @property
    def key(self) -> str:
        """Short key; machines whose times must not be mixed have different keys."""
        parts = (
            self.vendor,
            self.model,
            self.family,
            " ".join(sorted(self.features)),
            str(self.cores),
            str(self.memory_gib),
            self.system,
            *filter(None, [self.core]),
        )
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
        return f"{self.architecture}-{digest}"

    def text(self) -> str:
        """Return a one-line description."""
        widest = next((name for name in ("avx512f", "avx2", "asimd") if name in self.features), "")
        vectors = {"avx512f": ", AVX-512", "avx2": ", AVX2", "asimd": ", NEON"}.get(widest, "")
        cpu = self.model or self.architecture
        kind = f", timing on a core of kind {self.core}" if self.core else ""
        return f"{cpu}{vectors}, {self.cores} cores{kind}, {self.memory_gib} GiB, {self.system}"


@cache
def fingerprint() -> Machine:
    """Return the machine that this process runs on."""
    vendor, model, family, features = _cpu_macos() if platform.system() == "Darwin" else _cpu_linux()
    return Machine(
        vendor=vendor,
        model=" ".join(model.split()),
        family=family,
        features=features,
        cores=os.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / GIB),
        system=platform.system(),
        architecture=platform.machine(),
        core=core_kind(timing_core()),
    )


def core_kind(core: int | None, devices: Path = Path("/sys/devices")) -> str:
    """Return the kind of a core on a machine with several kinds; empty on others.

    Intel's kinds are named `core` and `atom`; Arm's are distinguished by Linux's estimate of their capacity,
    out of 1024.

    Args:
        core: Number of the core; None where processes cannot be pinned.
        devices: Linux's folder of devices.
    """
    if core is None:
        return ""
    for kind in ("core", "atom", "lowpower"):
        cpus = devices / f"cpu_{kind}" / "cpus"
        if cpus.exists() and core in _numbers(cpus.read_text()):
            return kind
    capacities = {
        path.parent.name: path.read_text().strip()
        for path in devices.glob("system/cpu/cpu[0-9]*/cpu_capacity")
    }
    return capacities.get(f"cpu{core}", "") if len(set(capacities.values())) > 1 else ""


def _numbers(text: str) -> set[int]:
    """Return the numbers of a list in Linux's notation: `0-3,8`."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def _cpu_linux() -> tuple[str, str, str, frozenset[str]]:
    """Return vendor, model, family and features of the first processor in /proc/cpuinfo, on x86 or Arm."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(errors="replace") if cpuinfo.exists() else ""
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    table = {name.strip(): value.strip() for name, _, value in pairs}
    numbers = [
        table.get("cpu family", table.get("CPU architecture", "")),
        table.get("model", table.get("CPU part", "")),
        table.get("stepping", table.get("CPU revision", "")),
    ]
    return (
        table.get("vendor_id", table.get("CPU implementer", "")),
        table.get("model name", platform.processor()),
        "-".join(filter(None, numbers)),
        frozenset(table.get("flags", table.get("Features", "")).lower().split()),
    )


def _cpu_macos() -> tuple[str, str, str, frozenset[str]]:
    vendor, model = sysctl("machdep.cpu.vendor"), sysctl("machdep.cpu.brand_string")
    numbers = [sysctl(f"machdep.cpu.{name}") for name in ("family", "model", "stepping")]
    features = [sysctl(f"machdep.cpu.{name}") for name in ("features", "leaf7_features", "extfeatures")]
    words = " ".join(features).lower().split()
    flags = frozenset(_LINUX_NAMES.get(word, word) for word in words)
    if platform.machine() == "arm64":
        flags |= {"asimd"}
    return vendor, model, "-".join(filter(None, numbers)), flags


_LINUX_NAMES = {"avx1.0": "avx", "lzcnt": "abm"}
"""Linux's names of features that differ from macOS's."""


def sysctl(name: str) -> str:
    """Return a value of macOS's sysctl; empty if this machine has none of that name."""
    done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Load:
    """Load of the machine.

    Attributes:
        average: Runnable processes, mean over the last minute.
        used: Share of all cores in use now, 0 to 1.
        cores: Logical cores.
    """

    average: float
    used: float
    cores: int

    @property
    def busy(self) -> bool:
        """Whether other work is likely to disturb timing: possibly no core is free."""
        return self.used * self.cores > self.cores - 1

    def text(self) -> str:
        """Return a short description."""
        state = "busy" if self.busy else "quiet"
        return f"{state}: {self.used:.0%} of {self.cores} cores in use, load average {self.average:.1f}"


def load(seconds: float = 0.05) -> Load:
    """Observe the machine for some seconds and return its load."""
    used = psutil.cpu_percent(interval=seconds) / 100
    return Load(average=os.getloadavg()[0], used=used, cores=os.cpu_count() or 1)


def timing_core() -> int | None:
    """Return the timing core: the last one that this process may use, since interrupts favour the first.

    Return None where the system cannot pin a process to a core (macOS).
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    return max(os.sched_getaffinity(0))


def timing_cores(last: int | None, count: int) -> tuple[int, ...]:
    """Return the timing cores of `count` threads: `last`, and the usable cores before it.

    They are fewer where this process may use fewer, and none where `last` is None.
    """
    if last is None:
        return ()
    before = sorted(core for core in os.sched_getaffinity(0) if core < last)
    return (*before[max(0, len(before) - (count - 1)) :], last)


def core_count() -> int:
    """Return the number of cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return len(os.sched_getaffinity(0))


def check_threads(count: int) -> None:
    """Check that there is a core for each thread.

    Raises:
        BackendError: There are fewer cores.
    """
    if count > core_count():
        raise BackendError(f"{count} threads are more than the {core_count()} cores here: choose fewer")


def threads_text(count: int) -> str:
    """Return a number of threads in words."""
    return f"{count} thread{'s' if count > 1 else ''}"


def pin(cores: set[int]) -> set[int]:
    """Pin all threads of this process to `cores`, and return the calling thread's previous cores.

    Do nothing where the system cannot pin threads (macOS).

    Raises:
        OSError: None of the cores may be used by this process.
    """
    if not hasattr(os, "sched_setaffinity"):
        return cores
    before = os.sched_getaffinity(0)
    if before != cores:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(int(thread.name), cores)
    return before


def cache_dir() -> Path:
    """Return the folder of all files that irgym keeps between runs; it may not exist yet.

    It is `$IRGYM_CACHE_DIR`, else `$XDG_CACHE_HOME/irgym`, else `~/.cache/irgym`.
    """
    chosen = os.environ.get("IRGYM_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "irgym"


@dataclass(frozen=True)
class Slot:
    """This process's access to the timing cores; an isolated worker sets it once.

    Attributes:
        cores: The timing cores, ascending, one for each thread; empty where processes cannot be pinned.
        shared: Whether other workers time on these cores too, so that this one stays there only while timing.
        waiting: Called with the lock of a core before the process waits for it, and with None afterwards.
        tell: Called with a line of text for whoever waits for the current call.
    """

    cores: tuple[int, ...]
    shared: bool
    waiting: Callable[[Path | None], None]
    tell: Callable[[str], None] = lambda text: None


SLOT: ContextVar[Slot | None] = ContextVar("SLOT", default=None)
_HELD: ContextVar[frozenset[int]] = ContextVar("_HELD", default=frozenset())


def restart_clock() -> None:
    """Restart the time limit of the current call; outside an isolated worker there is none.

    Use it in a call that runs several candidates, each of which gets the full time limit.
    """
    slot = SLOT.get()
    if slot is not None:
        slot.waiting(None)


def tell(text: str) -> None:
    """Tell whoever waits for the current call how it gets on; outside an isolated worker nobody hears it."""
    slot = SLOT.get()
    if slot is not None:
        slot.tell(text)


@contextmanager
def timing_slot() -> Generator[None, None, None]:
    """Hold the timing cores exclusively: pin to them, and hold their locks.

    Outside an isolated worker the process is not pinned, and takes the lock only if it is already pinned to a
    single core. May be nested.
    """
    slot = SLOT.get()
    cores = slot.cores if slot else _pinned_core()
    with ExitStack() as locks:
        # Ascending in every process, against deadlocks.
        for core in cores:
            locks.enter_context(core_lock(core))
        if slot is None or not slot.shared or not cores:
            yield
            return
        before = pin(set(cores))
        try:
            yield
        finally:
            pin(before)


def _pinned_core() -> tuple[int, ...]:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    return tuple(cores) if len(cores) == 1 else ()


@contextmanager
def core_lock(core: int) -> Generator[None, None, None]:
    """Hold the lock of a core, so that no other irgym process of this machine times on it.

    The lock is released when the process dies. May be nested.

    Raises:
        StorageError: The lock file cannot be opened, or, outside an isolated worker, will not be released.
    """
    held = _HELD.get()
    if core in held:
        yield
        return
    descriptor = _acquire(lock_file(core))
    token = _HELD.set(held | {core})
    try:
        yield
    finally:
        _HELD.reset(token)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """Take a lock. An isolated worker tells its parent which lock it waits for."""
    slot = SLOT.get()
    if slot is None:
        return lock_aloud(path)
    descriptor = try_lock(path)
    if descriptor is None:
        slot.waiting(path)
        descriptor = lock(path)
        slot.waiting(None)
    return descriptor
