"""Kinds of actions: what an action chooses, how it is written, and what it ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

MANY = 3
"""Number of equal slots above which messages list their values once."""


@dataclass(frozen=True)
class ActionKind:
    """A kind of action, such as `split`, and the choices of each of its parameter slots.

    Attributes:
        name: Lower-case words joined by hyphens.
        slots: For each slot, the values to choose from: numbers, or words without `_`.
        omitted: A value that stands for no parameter at all, such as no tile; None where there is none. The
            text form leaves it out where only such values follow, and half of what is drawn at random has it.
            Kinds that differ in nothing else are equal.
        candidates: Whether an action of this kind names one of the state's candidates.
        ends: What an action of this kind ends without changing the program: the `episode`, or a `turn`, the
            last of which ends the episode. Such a kind has neither slots nor candidates. What it ends is the
            task's to say: old files of policies do not, and kinds that differ in nothing else are equal.
    """

    name: str
    slots: tuple[tuple[int | str, ...], ...] = ()
    omitted: int | None = field(default=None, compare=False)
    candidates: bool = False
    ends: Literal["episode", "turn"] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.ends and (self.slots or self.candidates):
            raise ValueError(f"{self.name} ends the {self.ends}: give it neither slots nor candidates")

    def params(self, values: str) -> tuple[int, ...] | None:
        """Return the choices that an action's values stand for; None where there are no such choices."""
        parts = values.split("_") if values else []
        if self.omitted is not None:
            parts += [str(self.omitted)] * (len(self.slots) - len(parts))
        if len(parts) != len(self.slots):
            return None
        known = [[str(choice) for choice in choices] for choices in self.slots]
        if any(part not in texts for part, texts in zip(parts, known, strict=True)):
            return None
        return tuple(texts.index(part) for part, texts in zip(parts, known, strict=True))

    def text(self, params: Sequence[int]) -> str:
        """Return the name and the values chosen, joined by `_`, without those at the end that are omitted."""
        values = [choices[index] for choices, index in zip(self.slots, params, strict=True)]
        while values and values[-1] == self.omitted:
            values.pop()
        return "_".join([self.name, *map(str, values)])

    def form(self, candidate: str = "NAME") -> str:
        """Return how actions of this kind are written, such as `split_8 split_16` or `merge@NAME`.

        Values of many equal slots are listed once, with their number.
        """
        end = f"@{candidate}" if self.candidates else ""
        if len(self.slots) == 1:
            return " ".join(f"{self.name}_{choice}{end}" for choice in self.slots[0])
        values = ["|".join(map(str, slot)) for slot in self.slots]
        if len(values) > MANY and len(set(values)) == 1:
            count = len(values) if self.omitted is None else f"up to {len(values)}"
            return f"{self.name}_{values[0]}{end} ({count} such values, joined by _)"
        return "_".join([self.name, *values]) + end
