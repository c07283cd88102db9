"""Convolutions by name, over one to three axes: channels last, the filter's channels before its filters."""

from collections.abc import Mapping
from dataclasses import dataclass

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Option, ProgramUri
from irgym.envs.loops.programs.axes import Axis
from irgym.envs.loops.programs.einsum import Spec

AXES = {
    "conv1d": (("w", "s"),),
    "conv": (("h", "r"), ("w", "s")),
    "conv3d": (("d", "q"), ("h", "r"), ("w", "s")),
}
"""By family, for each axis the letters of the output's index and of the filter's."""

OPTIONS = (
    Option("stride", 1),
    Option("dilation", 1),
    Option("groups", 1),
    Option("padding", 0, low=0),
    Option("flip", False),
)
"""The options of all convolutions."""


@dataclass(frozen=True)
class Convolution:
    """A convolution.

    Attributes:
        axes: For each axis, the letters of the output's index and of the filter's.
        stride: Elements of the input from one element of the output to the next, along all axes.
        dilation: Elements of the input from one element of the filter to the next.
        groups: Groups of channels, each with filters of it alone.
        padding: Zeros before and after the input along each axis.
        flip: Whether the filter is reversed, as in mathematics; otherwise this is a cross-correlation.
    """

    axes: tuple[tuple[str, str], ...]
    stride: int
    dilation: int
    groups: int
    padding: int
    flip: bool


def families(more: tuple[Option, ...]) -> tuple[Family, ...]:
    """Return the families, with more options."""
    names = {
        "conv1d": "1-D convolution, NWC by SCF",
        "conv": "2-D convolution, NHWC by RSCF",
        "conv3d": "3-D convolution, NDHWC by QRSCF",
    }
    return tuple(
        Family(
            name,
            summary,
            (*OPTIONS, *more),
            sizes=(
                "N",
                *(out.upper() for out, _ in AXES[name]),
                "C",
                "F",
                *(tap.upper() for _, tap in AXES[name]),
            ),
        )
        for name, summary in names.items()
    )


def convolution_of(named: ProgramUri) -> Convolution | None:
    """Return the convolution of a URI; None if it is another program."""
    if named.family not in AXES:
        return None
    numbers = named.numbers
    return Convolution(
        AXES[named.family],
        numbers["stride"],
        numbers["dilation"],
        numbers["groups"],
        numbers["padding"],
        bool(numbers["flip"]),
    )


def build(named: ProgramUri, convolution: Convolution) -> tuple[Spec, Mapping[str, int]]:
    """Return the tensors, and the sizes in the order of the unscheduled nest.

    Channels of several groups have an axis `g` before `c` and `f`, which lies in memory as they do without.

    Raises:
        ProgramError: The groups do not divide the channels, or the padding leaves no input.
    """
    rank, groups = len(convolution.axes), convolution.groups
    batch, *outputs = named.sizes[: rank + 1]
    channels, filters, *taps = named.sizes[rank + 1 :]
    if channels % groups or filters % groups:
        raise ProgramError(
            f"{named.uri!r}: groups ({groups}) must divide the channels ({channels}) and the filters "
            f"({filters})"
        )
    image = [
        _axis(named.uri, convolution, axis, outputs[place], taps[place])
        for place, axis in enumerate(convolution.axes)
    ]
    outs, tap_letters = (tuple(axis[side] for axis in convolution.axes) for side in range(2))
    group = "g" if groups > 1 else ""
    spec = Spec(
        (
            (*_letters("n"), *image, *_letters(f"{group}c")),
            _letters("".join(tap_letters) + f"c{group}f"),
        ),
        _letters("n" + "".join(outs) + f"{group}f"),
    )
    sizes = {"n": batch, **dict(zip(outs, outputs, strict=True))}
    sizes |= {"g": groups} if group else {}
    sizes |= {**dict(zip(tap_letters, taps, strict=True)), "c": channels // groups, "f": filters // groups}
    return spec, sizes


def _letters(text: str) -> tuple[Axis, ...]:
    return tuple(Axis(((letter, 1),)) for letter in text)


def _axis(uri: str, convolution: Convolution, letters: tuple[str, str], outputs: int, taps: int) -> Axis:
    """Return an axis of the input."""
    stride, dilation, padding = convolution.stride, convolution.dilation, convolution.padding
    extent = stride * (outputs - 1) + dilation * (taps - 1) + 1 - 2 * padding
    if extent < 1:
        raise ProgramError(
            f"{uri!r} has no input left beside its padding: lower it to {(extent + 2 * padding - 1) // 2}"
        )
    first = dilation * (taps - 1) if convolution.flip else 0
    terms = ((letters[0], stride), (letters[1], -dilation if convolution.flip else dilation))
    return Axis(terms, first - padding, extent if padding else None)
