"""Restrictions of an action space, as texts: which kinds of actions, and which parameters, at which step.

The general form of LoopTune's small action space, and of `order` in MLIR RL.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from irgym.base.errors import IrgymError
from irgym.core.actions import ActionSpace, BoolArray, Mask


@dataclass(frozen=True, eq=False)
class Allowed:
    """Actions that may be taken at a step.

    Attributes:
        space: The actions.
        kinds: Shape [number of kinds].
        params: Shape of `Mask.params`.
    """

    space: ActionSpace
    kinds: BoolArray
    params: BoolArray

    def kept(self, mask: Mask) -> list[int]:
        """Return the places of the mask's candidates that may be taken."""
        return [place for place, (kind, _) in enumerate(mask.candidates) if self.kinds[kind]]

    def restricted(self, mask: Mask) -> Mask:
        """Return what a mask allows of these; it may be nothing."""
        params = mask.params & self.params
        kinds = mask.kinds & self.kinds
        for kind, sizes in enumerate(self.space.slot_sizes):
            offsets = self.space.slot_offsets[kind]
            kinds[kind] &= all(
                params[offset : offset + size].any() for offset, size in zip(offsets, sizes, strict=True)
            )
        pairs = mask.candidates
        if len(kept := self.kept(mask)) < len(pairs):
            pairs = tuple(pairs[place] for place in kept)
        return Mask(kinds, params, pairs)


def steps_of(text: str, space: ActionSpace) -> tuple[Allowed, ...]:
    """Return what a text allows at each step; the last holds for all steps after it too.

    Kinds that end a turn are always allowed, since nothing else leads to the next turn.

    Args:
        text: Names separated by commas: kinds (`split`), kinds with one value of their parameters
            (`split_8`, which other values of the kind may join), or patterns of kinds (`swap_*`). Where each
            begins with `!`, all others are meant. Semicolons separate steps, counted from the beginning of
            each turn, or of the episode where there are no turns; after the last step, only kinds that end
            the turn or the episode are allowed.
        space: The actions.

    Raises:
        IrgymError: There is no such kind or value, or nothing is left.
    """
    steps = [_allowed(part, space, text) for part in text.split(";")]
    if len(steps) > 1:
        ends = np.array([kind.ends is not None for kind in space.kinds], dtype=np.bool_)
        steps.append(Allowed(space, ends, np.ones(space.param_count, dtype=np.bool_)))
    return tuple(steps)


def _allowed(part: str, space: ActionSpace, whole: str) -> Allowed:
    names = [name.strip() for name in part.split(",") if name.strip()]
    without = [name.startswith("!") for name in names]
    if not names or (any(without) and not all(without)):
        reason = "mixes names with and without !" if names else "names no action in one of its steps"
        raise IrgymError(f"the actions {whole!r} {reason}: {_choices(space)}")
    start = without[0]
    kinds = np.full(len(space.kinds), start)
    params = np.full(space.param_count, start)
    for name in names:
        for kind, places in _named(name.removeprefix("!"), space):
            if not start or places is None:
                kinds[kind] = not start
            params[_all_params(space, kind) if places is None else places] = not start
    turns = np.array([kind.ends == "turn" for kind in space.kinds], dtype=np.bool_)
    if not kinds.any():
        raise IrgymError(f"the actions {whole!r} leave none in one of its steps: {_choices(space)}")
    return Allowed(space, kinds | turns, params)


def _named(name: str, space: ActionSpace) -> list[tuple[int, list[int] | None]]:
    """Return the kinds that a name means, and the places of a value in `Mask.params`; None for all values.

    Raises:
        IrgymError: There is no such kind or value.
    """
    found = [kind for kind, known in enumerate(space.kinds) if fnmatchcase(known.name, name)]
    if found:
        return [(kind, None) for kind in found]
    head, _, value = name.rpartition("_")
    for kind, known in enumerate(space.kinds):
        if known.name == head and known.slots:
            places = [
                offset + choice
                for offset, slot in zip(space.slot_offsets[kind], known.slots, strict=True)
                for choice, of_slot in enumerate(slot)
                if str(of_slot) == value or of_slot == known.omitted
            ]
            if any(str(choice) == value for slot in known.slots for choice in slot):
                return [(kind, places)]
    raise IrgymError(f"there is no action {name!r}: {_choices(space)}")


def _all_params(space: ActionSpace, kind: int) -> list[int]:
    """Return the places of all parameters of a kind."""
    return [
        offset + choice
        for offset, size in zip(space.slot_offsets[kind], space.slot_sizes[kind], strict=True)
        for choice in range(size)
    ]


def _choices(space: ActionSpace) -> str:
    """Return a remedy that lists the kinds."""
    valued = next((kind for kind in space.kinds if kind.slots), None)
    example = "" if valued is None else f"; a value may follow, as in {valued.name}_{valued.slots[0][-1]}"
    return f"choose among {', '.join(kind.name for kind in space.kinds)}{example}"
