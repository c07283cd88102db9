"""What code may be made for: it is scored, never run, so every target is there on every machine."""

import platform

from irgym.base.errors import BackendError
from irgym.core.target import AARCH64, LEVELS, X86_64, Target
from irgym.envs.cse.compiling.machines import MACHINES
from irgym.measure.target import ARCHITECTURES

TARGETS = {one.name: one for one in reversed(LEVELS) if one.name in MACHINES}
"""Targets by name."""


def target_named(target: Target | str | None) -> Target:
    """Return a target, by default the lowest level of this machine's architecture, if there is one for it.

    Raises:
        BackendError: There is none of that name.
    """
    if target is None:
        own = platform.machine().lower()
        return AARCH64 if ARCHITECTURES.get(own, own) == AARCH64.architecture else X86_64
    name = target if isinstance(target, str) else target.name
    if name not in TARGETS:
        raise BackendError(f"cse makes no code for {name!r}: choose among {', '.join(TARGETS)}")
    return TARGETS[name]
