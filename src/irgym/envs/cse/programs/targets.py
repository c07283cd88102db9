"""Targets of code generation: code is scored, never run, so every machine offers every target."""

import platform

from irgym.base.errors import BackendError
from irgym.core.target import AARCH64, LEVELS, X86_64, Target
from irgym.llvmir.programs.machines import MACHINES
from irgym.measure.target import ARCHITECTURES

TARGETS = {level.name: level for level in reversed(LEVELS) if level.name in MACHINES}
"""Targets by name."""


def target_named(target: Target | str | None) -> Target:
    """Return a target, by default the lowest level of this machine's architecture, or else of x86-64.

    Raises:
        BackendError: There is no such target.
    """
    if target is None:
        machine = platform.machine().lower()
        return AARCH64 if ARCHITECTURES.get(machine, machine) == AARCH64.architecture else X86_64
    name = target if isinstance(target, str) else target.name
    if name not in TARGETS:
        raise BackendError(f"cse has no target {name!r}: choose among {', '.join(TARGETS)}")
    return TARGETS[name]
