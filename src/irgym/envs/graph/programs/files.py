"""ONNX files as programs, with open dimensions bound and all but large weights inside."""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import load_external_data_for_model

from irgym.base.errors import ProgramError, StorageError
from irgym.core.profiles import Profile
from irgym.envs.graph.programs.bounds import check_expansion, check_inputs
from irgym.envs.graph.programs.inputs import given_inputs
from irgym.envs.graph.programs.metadata import (
    PREFIX,
    note_inputs,
    read_profiles,
    read_sizes,
    unnamed,
    write_profiles,
    write_ranges,
    write_sizes,
)
from irgym.envs.graph.programs.opsets import first_line
from irgym.envs.graph.programs.proposals import Dimension, proposed
from irgym.envs.graph.programs.samples import named_inputs, ranges_in, sizes_in
from irgym.envs.graph.programs.uris import FIXED
from irgym.envs.graph.programs.weights import INSIDE, files_of, put_back, taken_out, too_large
from irgym.measure.samples import Given

Ranges: TypeAlias = Mapping[str, tuple[int, int]]

FORMS = {
    (0, b"\x1f\x8b"): "is packed by gzip: unpack it",
    (0, b"PK"): "is an archive, such as torch.save writes: export the model as ONNX, or unpack it",
    (4, b"ORTM"): "is of ONNX Runtime's own format: give the ONNX file that it was made from",
}
"""Files of other kinds, by bytes at an offset, with a remedy for each."""

EMPTY = "holds no operations: export the model again"
"""The message about a file without operators."""

UNKNOWN = -1
"""A size that some exporters write for an open one."""

UNNAMED = frozenset("?&=#")
"""Characters that names of dimensions in URIs cannot contain; some exporters write the name `?`."""


def read(path: Path) -> tuple[onnx.ModelProto, list[Path]]:
    """Return the model in a file, and the other files with its weights.

    Raises:
        ProgramError: The file is no ONNX model or was cut off, or weights are missing or too large.
        StorageError: The file cannot be read.
    """
    model = parsed(path)
    if not model.graph.node:
        raise ProgramError(f"{path} {EMPTY}")
    return model, files_of(model, path)


def parsed(path: Path) -> onnx.ModelProto:
    """Return the model in a file, which may have no operators.

    Raises:
        ProgramError: The file is no ONNX model, was cut off, or is too large.
        StorageError: The file cannot be read.
    """
    try:
        if path.stat().st_size > INSIDE:
            remedy = (
                "save it with its weights in a file beside it (onnx.save_model, save_as_external_data=True)"
            )
            raise too_large(f"the file {path}", path.stat().st_size, INSIDE, remedy)
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    if not content:
        raise ProgramError(f"{path} is empty: export the model again")
    for (place, mark), said in FORMS.items():
        if content.startswith(mark, place):
            raise ProgramError(f"{path} {said}")
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise ProgramError(f"{path} is no ONNX model, or was cut off: export it again") from error
    if not model.ir_version:
        raise ProgramError(f"{path} is no ONNX model, or was cut off: export it again")
    if not model.graph.output:
        lacks = "has no results: export it with outputs" if model.graph.node else EMPTY
        raise ProgramError(f"{path} {lacks}")
    return model


def bound(
    path: str,
    bindings: tuple[tuple[str, int], ...],
    digests: Mapping[str, str],
    ranges: tuple[tuple[str, tuple[int, int]], ...] = (),
    inputs: Given | None = None,
    profiles: tuple[Profile, ...] = (),
) -> bytes:
    """Return a file's model with names for its open dimensions, and otherwise unchanged.

    Its metadata tell the sizes of open dimensions at which it is measured: those of the bindings, of an
    exported model's own metadata, or else of `proposals`.

    Large weights in separate files stay there, and the model refers to them; see `outside.refer`. All other
    weights are inside.

    Args:
        path: The file.
        digests: Digests of the files with weights, by file.
        bindings: Sizes of open dimensions, by their names in the file, and perhaps `fixed`. A dimension
            without a name that a URI can contain is named by its input and axis: `pixels.0`.
        ranges: Half-open ranges of integer inputs, by name. They are written into the metadata.
        inputs: Samples of the inputs, which tell sizes and ranges that are not given.
        profiles: All sizes at which it is measured, if there are several; the bindings are the first.

    Raises:
        ProgramError: The file is no valid ONNX model, no sizes are found at which it runs, a binding names no
            open dimension, a range names no integer input, or a sample does not fit.
        StorageError: A file cannot be read.
    """
    file = Path(path)
    model, beside = read(file)
    check_expansion(model, path)
    listed = {value.name for value in model.graph.input}
    try:
        weights = taken_out(model, file.parent, digests)
        if beside:
            load_external_data_for_model(model, str(file.parent))
        _check(model, path)
    except ValueError as error:
        raise ProgramError(f"{path} is no valid ONNX model: {first_line(error)}") from error
    except OSError as error:
        raise StorageError(f"cannot read the weights of {path}: {error.strerror}") from error
    known, sampled = dict(ranges), dict[str, int]()
    note_inputs(model, "" if inputs is None else inputs.digest)
    _note_ranges(model, known, path)
    if inputs is not None:
        known, sampled = _told_by(inputs, model, dict(bindings), known, path)
        _note_ranges(model, known, path)
    bind(model, dict(bindings), path, sampled, profiles)
    check_inputs(model, path)
    put_back(model, weights, listed)
    return model.SerializeToString(deterministic=True)


def _told_by(
    inputs: Given, model: onnx.ModelProto, bindings: Mapping[str, int], ranges: Ranges, path: str
) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return the ranges of integer inputs and the sizes of open dimensions that samples tell.

    Args:
        inputs: The samples.
        model: The model. Its open dimensions get names.
        bindings: Sizes that are given.
        ranges: Ranges that are given.
        path: The model's name in messages.

    Raises:
        ProgramError: A sample does not fit the model, the sizes or the ranges.
    """
    for name, dimension in list(_open(model, path)):
        dimension.dim_param = name
    given = given_inputs(model)
    samples = named_inputs(inputs.read(), given)
    sizes = sizes_in(samples, given, bindings, FIXED in bindings)
    return ranges_in(samples, ranges), sizes


def _check(model: onnx.ModelProto, path: str) -> None:
    """Refuse a model that neither onnx's checker nor ONNX Runtime accepts.

    The checker also refuses deprecated operators, such as GroupNormalization of opset 18.

    Raises:
        ProgramError: Both refuse the model.
    """
    try:
        _check_by_onnx(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        # Importing ONNX Runtime takes a while, and few models need it here.
        from irgym.envs.graph.running.session_options import OFF
        from irgym.envs.graph.running.sessions import CompileError, opened, options_of

        try:
            opened(model.SerializeToString(), options_of(OFF, threads=1))
        except CompileError:
            raise ProgramError(f"{path} is no valid ONNX model: {first_line(error)}") from error


def _check_by_onnx(model: onnx.ModelProto) -> None:
    """Check a model by onnx's checker, but allow results without shapes, since these can be inferred.

    Raises:
        ValidationError: The model is invalid.
    """
    kinds = [value.type.tensor_type for value in model.graph.output if value.type.HasField("tensor_type")]
    shapeless = [kind for kind in kinds if not kind.HasField("shape")]
    for kind in shapeless:
        kind.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    finally:
        for kind in shapeless:
            kind.ClearField("shape")


def bind(
    model: onnx.ModelProto,
    bindings: Mapping[str, int],
    path: str,
    sampled: Mapping[str, int] = MappingProxyType({}),
    profiles: Sequence[Profile] = (),
) -> None:
    """Name the dimensions that a model's inputs leave open, and note their sizes.

    Args:
        model: The model. It is changed. If it has open dimensions, the shapes of inner values are dropped.
        bindings: Sizes of dimensions, by name.
        path: The model's name in messages.
        sampled: Sizes in a sample of the inputs.
        profiles: Several sizes to measure it at; the bindings are the first. Without sizes of any kind, those
            in the metadata of an exported model stay.

    Raises:
        ProgramError: No sizes are found, a binding names no open dimension, profiles leave one out, or an
            input is no tensor.
    """
    dimensions = list(_open(model, path))
    names = dict.fromkeys(name for name, _ in dimensions)
    fixed = FIXED not in names and bindings.get(FIXED, 0)
    for name in bindings:
        if name not in names and name != FIXED:
            raise ProgramError(
                f"{path} has no open dimension {name!r}; its open dimensions: {', '.join(names) or 'none'}"
            )
    _check_profiles(profiles, names, bool(fixed), path)
    if not bindings and not sampled:
        profiles = [told for told in read_profiles(model) if dict(told.sizes).keys() == names.keys()]
    write_profiles(model, profiles)
    if not names:
        write_sizes(model, {})
        return
    for name, dimension in dimensions:
        dimension.dim_param = name
    del model.graph.value_info[:]
    first = dict(profiles[0].sizes) if profiles else {}
    given = {**read_sizes(model), **sampled, **bindings, **first}
    known = {name: size for name, size in given.items() if name in names}
    if len(known) < len(names):
        known = proposed(model, list(_dimensions(model)), known, path)
    write_sizes(model, {} if fixed else known)
    if fixed:
        _fix(model, known)


def _check_profiles(profiles: Sequence[Profile], names: Collection[str], fixed: bool, path: str) -> None:
    """Refuse profiles of a model that is to be fixed, or without sizes of all open dimensions.

    Raises:
        ProgramError: They make no sense for the model.
    """
    if not profiles:
        return
    if fixed:
        raise ProgramError(f"{path}: {FIXED}=1 is for one size: leave it out, or name one size")
    missing = [name for name in names if name not in dict(profiles[0].sizes)]
    if missing:
        raise ProgramError(
            f"{path} leaves {', '.join(missing)} open too: where several sizes are named, each names all"
        )


def _note_ranges(model: onnx.ModelProto, ranges: Ranges, path: str) -> None:
    """Write ranges of inputs into a model's metadata, replacing earlier ones.

    Raises:
        ProgramError: A range names no integer input, or is empty.
    """
    whole = {value.name for value in given_inputs(model) if value.type.tensor_type.elem_type in WHOLE}
    for name, (low, high) in ranges.items():
        if name not in whole:
            known = ", ".join(sorted(whole)) or "none"
            raise ProgramError(
                f"{path} has no integer input {name!r} to give a range for; its integer inputs: {known}"
            )
        if low >= high:
            raise ProgramError(
                f"the range {low}:{high} of {name} is empty: give the least number, and the greatest plus 1"
            )
    kept = [entry for entry in model.metadata_props if entry.key.removeprefix(PREFIX) not in ranges]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    write_ranges(model, ranges)


WHOLE = frozenset(
    kind
    for name, kind in onnx.TensorProto.DataType.items()
    if name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)
"""Integer types."""


def _fix(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Fix the open dimensions of inputs, and of results as far as they have the same names."""
    for value in (*model.graph.input, *model.graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
            elif dimension.HasField("dim_param"):
                dimension.ClearField("dim_param")


def _dimensions(model: onnx.ModelProto) -> Iterator[Dimension]:
    """Yield the open dimensions, which all have names by now."""
    for value in given_inputs(model):
        kind = value.type.tensor_type
        shape = tuple(None if dimension.dim_param else dimension.dim_value for dimension in kind.shape.dim)
        floating = kind.elem_type not in WHOLE
        for axis, dimension in enumerate(kind.shape.dim):
            if dimension.dim_param:
                yield Dimension(dimension.dim_param, axis, shape, floating)


def _open(model: onnx.ModelProto, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the open dimensions of inputs, with their names."""
    for value in given_inputs(model):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise ProgramError(f"{path}: the input {value.name} is no tensor: export it with tensors only")
        if not value.type.tensor_type.HasField("shape"):
            raise ProgramError(
                f"{path}: the rank of the input {value.name} is unknown: export it with shapes"
            )
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.dim_param and not UNNAMED.intersection(dimension.dim_param):
                yield dimension.dim_param, dimension
            elif dimension.dim_value < UNKNOWN:
                raise ProgramError(
                    f"{path}: the input {value.name} has a size of {dimension.dim_value}: export it again"
                )
            elif not dimension.HasField("dim_value") or dimension.dim_value == UNKNOWN:
                yield unnamed(value.name, axis), dimension
