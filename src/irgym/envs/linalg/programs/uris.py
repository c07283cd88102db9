"""Programs of the `linalg` environment, by URI: operators, networks, and files."""

from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import ProgramError
from irgym.core.uri import Files, Grammar
from irgym.envs.linalg.programs.families import FAMILIES, NETWORKS
from irgym.envs.linalg.programs.operators import Operator

SUFFIX = ".mlir"
"""Suffix of the files that are read."""

TORCH = ".torch.pt2"
"""Suffix of the exported torch program beside a file that `from_torch` wrote."""

WEIGHTS = "irgym_weights.json"
"""Entry of the exported program with the names of the program's weights, in order."""

GRAMMAR = Grammar(
    "linalg",
    FAMILIES,
    Files((SUFFIX,), fragments=True, bindings=True),
    "linalg://OPERATOR/SIZES?name=value&..., linalg://NETWORK?name=value&... or linalg:FILE.mlir",
)
"""The URIs of programs."""

_NETWORKS = frozenset(family.name for family in NETWORKS)


@dataclass(frozen=True)
class Network:
    """A network of torch.

    Attributes:
        name: Its family: `resnet18`.
        options: Every option of the family and its value.
    """

    name: str
    options: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class File:
    """A user's file.

    Attributes:
        path: The path as the user gave it.
        function: Name of the function that is the program; empty for the only one.
        sizes: Values of the function's dynamic sizes, by name: `arg0.1`.
    """

    path: Path
    function: str = ""
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Source:
    """The origin of the program that a URI names.

    Attributes:
        uri: Canonical URI: only options that differ from the defaults, sorted by name.
        origin: An operator, a network, or a file.
    """

    uri: str
    origin: Operator | Network | File

    @property
    def family(self) -> str:
        """Name of its family; empty for a file."""
        return "" if isinstance(self.origin, File) else self.origin.name


def parse_uri(uri: str) -> Source:
    """Return the source that a URI names.

    Args:
        uri: `linalg://matmul/256x512x1024`, `linalg://resnet18?size=224`, or `linalg:module.mlir`.

    Raises:
        ProgramError: It is malformed, has an unknown family or option or sizes that are absurd or do not fit
            together, or names a file that is missing or of another kind.
    """
    named = GRAMMAR.parse(uri)
    if named.path is not None:
        return Source(named.uri, File(named.path, named.fragment, named.bindings))
    options = tuple(named.numbers.items())
    if named.family in _NETWORKS:
        return Source(named.uri, Network(named.family, options))
    operator = Operator(named.family, named.sizes, options)
    try:
        operator.text()
    except ProgramError as error:
        raise ProgramError(f"{uri!r}: {error}") from error
    return Source(named.uri, operator)
