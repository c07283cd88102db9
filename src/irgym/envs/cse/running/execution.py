"""Functions run, each call in a process of its own that may crash. It runs in a child process."""

import ctypes
import faulthandler
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from irgym.envs.cse.running.arguments import FILLS, Arguments, Signature
from irgym.envs.cse.scoring import llvm

T = TypeVar("T")

CALLS = len(FILLS)
"""Calls on each random input: one for each filling of memory."""

CALL_S, ALL_S = 0.25, 60.0
"""Seconds of the processor that a call may take, and compiling with all calls."""

PATIENCE = 10
"""How many times as long a call may wait for something, such as its input."""

SMALL, COUNT = range(16, 1024, 16), 64
"""Sizes of memory that a program commonly asks for, and how many of each are taken to move the rest."""

Outcome = bytes | str
"""What stands for all that a call left, or how it failed, in words."""

_PERTURB = -6  # M_PERTURB in malloc.h

_CLOCKS = (signal.SIGPROF, signal.SIGALRM)


@dataclass(frozen=True)
class Subject:
    """A function that is to be run.

    Attributes:
        name: Its name, without sigil; it can be seen from outside.
        signature: What it takes and returns.
        arguments: Its arguments.
        seed: Seed of the arguments.
    """

    name: str
    signature: Signature
    arguments: Arguments
    seed: int


def outcomes(
    module: str, subject: Subject, calls: Iterable[int], seconds: float = CALL_S, elsewhere: bool = False
) -> Mapping[int, Outcome] | str:
    """Return what a function makes of made-up arguments.

    Args:
        module: The module, as text, for this machine.
        subject: The function.
        calls: Numbers of the calls.
        seconds: Seconds that each may take.
        elsewhere: Whether memory, code and stack are at other addresses than otherwise, and new memory holds
            something else.

    Returns:
        The outcome of each call; or why there is none.
    """

    def run() -> Mapping[int, Outcome] | str:
        _prepare_heap(elsewhere)
        engine = _engine(module)
        address: int = engine.get_function_address(subject.name)
        if not address:
            return "it calls what is not there"
        compiled = subject.signature.function(address)
        found: dict[int, Outcome] = {}
        endless: set[int] = set()
        for call in calls:
            if call % CALLS in endless:  # memory that is filled so once more would take as long
                found[call] = _endless(seconds)
                continue
            found[call] = _in_process(lambda call=call: _called(compiled, subject, call, elsewhere), seconds)
            if found[call] == _endless(seconds):
                endless.add(call % CALLS)
        return found

    return _in_process(run, ALL_S + seconds * CALLS)


def _called(function: Callable[..., Any], subject: Subject, call: int, elsewhere: bool) -> bytes:
    values = subject.arguments.fill(subject.seed, call)
    before = subject.arguments.content()
    returned: list[Any] = []
    if elsewhere:  # another thread has another stack
        thread = threading.Thread(target=lambda: returned.append(function(*values)))
        thread.start()
        thread.join()
    else:
        returned.append(function(*values))
    after = subject.arguments.content()
    memory = b"" if after == before else after  # a function that leaves it alone is to have one outcome
    return blake2b(subject.arguments.told(returned[0]) + b"|" + memory, digest_size=16).digest()


def _prepare_heap(elsewhere: bool) -> None:
    """Have new memory filled with a byte, and take some of all common sizes so that the rest is elsewhere."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc's
        library.mallopt(_PERTURB, 0xA5 if elsewhere else 0x5A)
    if not elsewhere:
        return
    allocate = library.malloc
    for size in (*SMALL, 1 << 20):
        for _ in range(COUNT if size in SMALL else 1):
            allocate(size)


def _in_process(run: Callable[[], T], seconds: float) -> T | str:
    """Run a function in a fork of this process, and return its result; or in words, how the fork ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _run_and_leave(run, seconds, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if -code in _CLOCKS:
        return _endless(seconds)
    if code or not content:
        return f"it ended the process ({signal.Signals(-code).name if code < 0 else f'status {code}'})"
    return pickle.loads(content)


def _endless(seconds: float) -> str:
    return f"it did not end within {seconds:g} s"


def _run_and_leave(run: Callable[[], Any], seconds: float, writing: int) -> None:
    status = 1
    try:
        faulthandler.disable()
        for clock in _CLOCKS:
            signal.signal(clock, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
        _close_others(writing)
        content = pickle.dumps(run())
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(content)
        status = 0
    finally:
        os._exit(status)


def _close_others(kept: int) -> None:
    """Close all files but one: what runs may write into any whose number it makes up."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _engine(text: str) -> Any:
    """Return the engine of a module, ready to run."""
    binding = llvm.binding()
    module = llvm.read(text, "what irgym wrote")
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    engine.run_static_constructors()
    return engine
