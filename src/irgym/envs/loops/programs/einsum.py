"""numpy's notation of einsum, with affine axes: `ij,jk`, `...ij,jk->...ik`, `n[2*h+r-1:28],r->nh`."""

from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import NamedTuple

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.axes import Axis, parse_axes

DOTS = "..."

MOST_INPUTS = 2


class Spec(NamedTuple):
    """The tensors of a contraction.

    Attributes:
        inputs: Axes of the one or two inputs.
        output: Axes of the output.
    """

    inputs: tuple[tuple[Axis, ...], ...]
    output: tuple[Axis, ...]

    def text(self) -> str:
        """Return the canonical notation: no blanks, no dots, the output written."""
        tensors = ["".join(axis.spec() for axis in axes) for axes in (*self.inputs, self.output)]
        return f"{','.join(tensors[:-1])}->{tensors[-1]}"


def parse_einsum(uri: str, text: str) -> Spec:
    """Parse a contraction in numpy's notation with affine axes, without dots.

    Raises:
        ProgramError: It is malformed, or has more than two inputs or several outputs.
    """
    plain = "".join(text.split())
    left, arrow, right = plain.partition("->")
    words = left.split(",")
    if len(words) > MOST_INPUTS:
        raise ProgramError(
            f"{uri!r} has {len(words)} inputs and loops takes one or two: contract two of them at a time, "
            "in the order of numpy.einsum_path"
        )
    if "," in right:
        raise ProgramError(f"{uri!r} has several outputs and loops takes one: write a program for each")
    if DOTS in plain:
        raise ProgramError(f"{uri!r} needs the sizes that ... stands for: add ...=8 or ...=2x8")
    inputs = tuple(parse_axes(uri, word) for word in words)
    return Spec(inputs, parse_axes(uri, right) if arrow else implicit_output(inputs))


def without_dots(uri: str, text: str, batch: Sequence[int]) -> tuple[str, dict[str, int]]:
    """Return a contraction with letters in place of `...`, and their sizes.

    Args:
        uri: The text that it stands in, for messages.
        text: The contraction.
        batch: Sizes of the dimensions that `...` stands for; each tensor with dots has all of them.

    Raises:
        ProgramError: No input has dots, a tensor has them twice, or there are too many letters.
    """
    free = [letter for letter in ascii_letters if letter not in text][: len(batch)]
    if len(free) < len(batch):
        raise ProgramError(f"{uri!r} needs more than {len(ascii_letters)} letters: give it fewer dimensions")
    left, arrow, right = text.partition("->")
    if DOTS not in left:
        raise ProgramError(f"{uri!r} gives sizes to dots that no input has: write ... in an input")
    for word in (*left.split(","), right):
        if word.count(DOTS) > 1:
            raise ProgramError(f"{uri!r} is malformed at {word!r}: a tensor has ... at most once")
    letters = "".join(free)
    if not arrow:  # numpy puts the dimensions of the dots first
        plain = parse_einsum(uri, left.replace(DOTS, ""))
        arrow, right = "->", DOTS + "".join(axis.spec() for axis in plain.output)
    return (left + arrow + right).replace(DOTS, letters), dict(zip(free, batch, strict=True))


def implicit_output(inputs: Sequence[Sequence[Axis]]) -> tuple[Axis, ...]:
    """Return numpy's output where none is written: the letters that stand once, in order."""
    every = [dim for axes in inputs for axis in axes for dim, _ in axis.terms]
    return tuple(Axis(((dim, 1),)) for dim in sorted(set(every)) if every.count(dim) == 1)


def sizes_of(uri: str, spec: Spec, given: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes in the order of the unscheduled nest: outputs, reductions, the last output.

    Raises:
        ProgramError: A letter has no size, or a size no letter.
    """
    outputs = [dim for axis in spec.output for dim, _ in axis.terms]
    inputs = [dim for axes in spec.inputs for axis in axes for dim, _ in axis.terms]
    order = [*outputs[:-1], *(dim for dim in inputs if dim not in outputs), *outputs[-1:]]
    order = list(dict.fromkeys(order))
    missing, unused = set(order) - set(given), set(given) - set(order)
    if missing or unused:
        raise ProgramError(
            f"{uri!r} needs exactly one size for each letter: "
            + "; ".join(
                f"{what} {', '.join(sorted(letters))}"
                for what, letters in (("add", missing), ("remove", unused))
                if letters
            )
        )
    return {dim: given[dim] for dim in order}
