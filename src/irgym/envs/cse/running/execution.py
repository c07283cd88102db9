"""Functions run, each module in a process of its own that may crash. It runs in a child process."""

import faulthandler
import os
import pickle
import signal
from hashlib import blake2b
from typing import Any

import numpy as np

from irgym.envs.cse.running.arguments import Arguments, Signature
from irgym.envs.cse.scoring import llvm

CALLS = 5
"""Calls on each random input: one for each filling of memory."""

SECONDS = 5
"""Seconds that all calls of a function may take."""


def outcomes(module: str, name: str, signature: Signature, inputs: int, seed: int) -> list[bytes] | str:
    """Return what a function makes of made-up arguments: for each call, what stands for all that it left.

    Args:
        module: The module, as text, for this machine.
        name: Name of the function, without sigil; it can be seen from outside.
        signature: What it takes and returns.
        inputs: Random inputs, each with `CALLS` calls.
        seed: Seed of the arguments.

    Returns:
        The outcomes, or how it failed, in words.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _in_child(writing, module, name, signature, inputs, seed)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"it did not end within {SECONDS} s"
    if code:
        return f"it ended the process ({signal.Signals(-code).name if code < 0 else f'status {code}'})"
    return pickle.loads(content)


def _in_child(writing: int, module: str, name: str, signature: Signature, inputs: int, seed: int) -> None:
    """Run the calls and end the process."""
    status = 1
    try:
        faulthandler.disable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        found = _run(module, name, signature, inputs, seed)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(found))
        status = 0
    finally:
        os._exit(status)


def _run(module: str, name: str, signature: Signature, inputs: int, seed: int) -> list[bytes] | str:
    engine = _engine(module)
    address: int = engine.get_function_address(name)
    if not address:
        return "it calls what is not there"
    function = signature.function(address)
    rng = np.random.default_rng(seed)
    found: list[bytes] = []
    for _ in range(inputs):
        for place in range(CALLS):
            arguments = Arguments(signature, rng, place)
            before = arguments.content()
            returned = function(*arguments.values)
            after = arguments.content()
            found.append(_digest(returned, signature, arguments, b"" if after == before else after))
    return found


def _digest(returned: Any, signature: Signature, arguments: Arguments, memory: bytes) -> bytes:
    kept = b""
    if signature.result == "ptr":  # where it points to differs from one process to another
        places = [place for place, one in enumerate(arguments.values) if one == returned]
        kept = repr((returned is None, places)).encode()
    elif signature.result != "void":
        kept = np.array(returned).tobytes()
    return blake2b(kept + b"|" + memory, digest_size=16).digest()


def _engine(text: str) -> Any:
    """Return the engine of a module, ready to run."""
    binding = llvm.binding()
    module = llvm.read(text, "what irgym wrote")
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    engine.run_static_constructors()
    return engine
