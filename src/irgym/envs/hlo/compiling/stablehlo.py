"""Conversion of HloModuleProtos to StableHLO for jaxlib. Imports jaxlib: for child processes only.

jaxlib does the conversion, except that it keeps `bitcast`, which some passes put in place of a reshape, in a
dialect that its compiler reads wrongly. Here a bitcast becomes transpositions and a reshape.
"""

# jaxlib has no type stubs.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import re

from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]

from irgym.base.errors import ProgramError

_BITCAST = re.compile(
    r"^(?P<indent> *)(?P<result>%\w+) = mhlo\.bitcast (?P<operand>%[\w#]+)(?: \{(?P<attributes>.*?)\})?"
    r" : \(tensor<(?P<before>(?:\d+x)*)(?P<element>[\w<>]+)>\)"
    r" -> tensor<(?P<after>(?:\d+x)*)(?P=element)>(?P<rest>.*)$",
    re.MULTILINE,
)


def stablehlo(proto: bytes) -> str:
    """Return a module as MLIR text, without donated arguments.

    Args:
        proto: Serialized HloModuleProto.

    Raises:
        ProgramError: It calls back into Python, or is for several devices.
        ValueError: jaxlib cannot convert it.
    """
    check_one_device(proto)
    text: str = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    # The address of the Python function belongs to another process.
    check_no_callback("the program", proto)
    text = re.sub(r"mhlo\.input_output_alias = \[[^\]]*\]", "mhlo.input_output_alias = []", text, count=1)
    return _BITCAST.sub(_reinterpreted, text)


def check_one_device(proto: bytes) -> None:
    """Check that a module is for one device.

    Args:
        proto: Serialized HloModuleProto, with the attributes that reading a file adds.

    Raises:
        ProgramError: It is for several.
    """
    for count in map(int, re.findall(rb"irgym\.(?:replicas|partitions)\x12.(\d+)", proto, re.DOTALL)):
        if count > 1:
            raise ProgramError(f"it is made for {count} devices, and irgym runs programs on one")


def check_no_callback(name: str, proto: bytes) -> None:
    """Check that a module runs without the process that made it.

    Args:
        name: Name of the program in the error.
        proto: Serialized HloModuleProto.

    Raises:
        ProgramError: It calls back into Python.
    """
    callback = re.search(rb"\w*python\w*callback\w*", proto)
    if callback:
        raise ProgramError(
            f"{name} calls back into Python ({callback[0].decode()}), which no other process can: remove "
            "prints, callbacks and checks; those of equinox and diffrax are off under EQX_ON_ERROR=nan"
        )


def _reinterpreted(match: re.Match[str]) -> str:
    """Return a bitcast as a transposition to the order in memory, a reshape, and a transposition back."""
    before, after = (match[name].split("x")[:-1] for name in ("before", "after"))
    element = match["element"]
    attributes = match["attributes"] or ""
    source = _major_to_minor(attributes, "source_layout", len(before))
    result = _major_to_minor(attributes, "result_layout", len(after))
    lines: list[str] = []
    name, final = match["operand"], match["result"]
    in_memory = [before[dim] for dim in source]
    if source != sorted(source):
        ordered = f"%ordered_{final[1:]}"
        lines.append(_transpose(ordered, name, source, before, in_memory, element))
        name = ordered
    reshaped = [after[dim] for dim in result]
    last = final if result == sorted(result) else f"%placed_{final[1:]}"
    types = f"({_tensor(in_memory, element)}) -> {_tensor(reshaped, element)}"
    lines.append(f"{last} = stablehlo.reshape {name} : {types}")
    if last != final:
        back = [result.index(dim) for dim in range(len(result))]
        lines.append(_transpose(final, last, back, reshaped, after, element))
    return "\n".join(f"{match['indent']}{line}{match['rest']}" for line in lines)


def _major_to_minor(attributes: str, name: str, rank: int) -> list[int]:
    """Return a layout's dimensions, the slowest first; row-major by default."""
    found = re.search(rf"{name} = dense<\[?([\d, ]*)\]?>", attributes)
    if found is None:
        return list(range(rank))
    return [int(dim) for dim in reversed(found[1].split(",")) if dim.strip()]


def _transpose(
    result: str, operand: str, dims: list[int], before: list[str], after: list[str], element: str
) -> str:
    types = f"({_tensor(before, element)}) -> {_tensor(after, element)}"
    return f"{result} = stablehlo.transpose {operand}, dims = {dims} : {types}"


def _tensor(dims: list[str], element: str) -> str:
    return f"tensor<{'x'.join([*dims, element])}>"
