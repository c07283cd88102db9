"""The entry of a module called, many times. It runs in a child process."""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from irgym.envs.cse.running.harness import ENTRY
from irgym.envs.cse.running.processes import endless, in_process, in_turn
from irgym.envs.cse.scoring import llvm

T = TypeVar("T")

CALL_S, ALL_S = 0.25, 60.0
"""Seconds of the processor that a call may take, and compiling with all calls."""

AT_ONCE, PATIENT = 16, 6
"""How many calls are looked at together, and after how many that do not end no more are made."""

Begin = Callable[[int, Callable[[], NoReturn]], None]
"""Makes ready for a call, by its number; the function that it takes ends the call where it stands."""


def outcomes(
    module: str,
    begin: Begin,
    ended: Callable[[], T],
    calls: Sequence[int],
    seconds: float = CALL_S,
    elsewhere: bool = False,
    enough: Callable[[Sequence[T]], bool] | None = None,
) -> Mapping[int, T | str] | str:
    """Call the entry of a module.

    Args:
        module: The module, as text, for this machine.
        begin: Is called before each call.
        ended: Is called after it; it returns the outcome.
        calls: Numbers of the calls.
        seconds: Seconds that each may take.
        elsewhere: Whether the stack is at other addresses than otherwise.
        enough: Says from the outcomes so far whether no more calls are wanted. Calls share a process then.

    Returns:
        What became of each call, or in words, how it failed; or why there is none.
    """

    def run() -> Mapping[int, T | str] | str:
        engine = _engine(module)
        address: int = engine.get_function_address(ENTRY)
        if not address:
            return "it calls what is not there"
        function = ctypes.CFUNCTYPE(None)(address)

        def called(call: int, leave: Callable[[T], NoReturn]) -> T:
            begin(call, lambda: leave(ended()))
            _run(function, elsewhere)
            return ended()

        found: dict[int, T | str] = {}
        for first in range(0, len(calls), AT_ONCE):
            some = calls[first : first + AT_ONCE]
            found |= zip(some, in_turn(called, some, seconds, forget=enough is None), strict=True)
            ends = [one for one in found.values() if not isinstance(one, str)]
            if (enough and enough(ends)) or list(found.values()).count(endless(seconds)) >= PATIENT:
                break
        return found

    return in_process(run, ALL_S + seconds * len(calls))


def _run(function: Callable[[], None], elsewhere: bool) -> None:
    if not elsewhere:
        return function()
    thread = threading.Thread(target=function)  # it has another stack
    thread.start()
    thread.join()


def _engine(text: str) -> Any:
    """Return the engine of a module, ready to run."""
    binding = llvm.binding()
    module = llvm.read(text, "what irgym wrote")
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    engine.run_static_constructors()
    return engine
