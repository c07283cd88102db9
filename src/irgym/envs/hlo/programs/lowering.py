"""Lowering of models in JAX and of files to HloModuleProtos. Imports jax: for child processes only."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jax.interpreters.mlir import make_ir_context
from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
from jaxlib.mlir import ir
from jaxlib.mlir.dialects.stablehlo import (
    StablehloCompatibilityRequirement,
    deserialize_portable_artifact,
    get_version_from_compatibility_requirement,
    serialize_portable_artifact_str,
)

from irgym.base.errors import ProgramError, explained
from irgym.core.uri import ProgramUri
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.stablehlo import check_no_callback, stablehlo
from irgym.envs.hlo.programs.models.catalogue import BUILDERS
from irgym.envs.hlo.programs.models.training import inference, training_step
from irgym.envs.hlo.programs.uris import parse_program

_TEXT = (".hlo", ".txt")
_PROTO = (".pb",)


def lower(uri: str) -> bytes:
    """Return the unoptimised HloModuleProto of a program; for a file see `convert`.

    Sets jax to the CPU and to its default number formats: call it in a separate process.

    Raises:
        ProgramError: The URI is malformed, or jax rejects the combination of its parameters.
    """
    program = parse_program(uri)
    if program.path is not None:
        return convert(str(program.path))
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", False)
    jax.config.update("jax_threefry_partitionable", True)
    # The module must not depend on the folder in which irgym is installed.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    return _model_proto(program)


def _model_proto(program: ProgramUri) -> bytes:
    options = program.options
    try:
        model = BUILDERS[program.family](options)
        build = inference if options["mode"] == "forward" else training_step
        return _proto(*build(model, options))
    except (TypeError, ValueError) as error:
        raise ProgramError(f"{program.uri}: jax cannot build it: {_first_line(error)}") from error


def lower_function(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return the unoptimised HloModuleProto of a function for the CPU, under the current settings of jax.

    Args:
        function: A function that `jax.jit` accepts, or its result.
        arguments: Arrays or `jax.ShapeDtypeStruct`s, in pytrees.

    Raises:
        ProgramError: jax cannot trace or lower it, or it calls back into Python.
    """
    name = getattr(function, "__name__", "the function")
    try:
        proto = _proto(function, arguments)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"jax cannot lower {name}: {_first_line(error)}") from error
    check_no_callback(name, proto)
    return proto


def jitted(function: Callable[..., Any]) -> Any:
    """Return the jitted form of a function, which may be jitted already."""
    return function if hasattr(function, "trace") else jax.jit(function)


def _proto(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return the module of a function.

    Raises:
        TypeError: jax refuses the arguments.
        ValueError: The same, or XLA refuses the module, as where a tensor has 2^63 elements or more.
    """
    lowered = jitted(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    try:
        return lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    except RuntimeError as error:
        refusal = str(error).partition("INVALID_ARGUMENT: ")[2]
        if not refusal:
            raise
        raise ValueError(refusal) from error


def convert(source: str) -> bytes:
    """Return the HloModuleProto in a file.

    Args:
        source: HLO text (.hlo, .txt), an HloModuleProto or HloProto (.pb), or StableHLO as text, bytecode
            or portable artifact (.mlir, .stablehlo, .mlirbc, .bc).

    Raises:
        ProgramError: The file does not parse, has dynamic shapes, or calls back into Python.
        StorageError: The file cannot be read.
    """
    file = Path(source)
    with explained(f"cannot read {source}", "check the path and its permissions"):
        content = file.read_bytes()
    suffix = file.suffix.lower()
    if suffix in _TEXT:
        proto = _from_text(source, content)
    elif suffix in _PROTO:
        proto = _from_proto(source, content)
    else:
        proto = _from_stablehlo(source, content)
    check_no_callback(source, proto)
    module = load_engine().from_proto(proto)
    if dynamic := module.dynamic():
        raise ProgramError(f"{source} has dynamic shapes ({dynamic}): lower it again with every size fixed")
    replicas, partitions = (1, 1) if suffix in (*_TEXT, *_PROTO) else _devices(source, content)
    if module.devices * replicas * partitions == 1:
        return proto
    module.note_devices(replicas, partitions)
    return module.proto()


def to_stablehlo(proto: bytes) -> str:
    """Return an HloModuleProto as StableHLO text.

    Raises:
        ProgramError: It has operations that StableHLO lacks, or calls back into Python.
    """
    try:
        return stablehlo(proto)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise ProgramError(
            f"the module cannot be written as StableHLO ({_first_line(error)}): export .hlo or .pb"
        ) from error


def to_exported(proto: bytes) -> bytes:
    """Return an HloModuleProto in the form of `jax.export.deserialize`; `call` takes and returns flat arrays.

    jax exports a function with the same arguments and results, whose code is then replaced.

    Raises:
        ProgramError: It has operations that StableHLO lacks, nested tuples, or numbers that jax lacks.
    """
    text = to_stablehlo(proto)
    with make_ir_context():
        module = ir.Module.parse(text)
        functions = {ir.StringAttr(part.attributes["sym_name"]).value: part for part in module.body}
        main = functions["main"]
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        takes, gives = list(map(_structure, kind.inputs)), list(map(_structure, kind.results))

    def frame(*arguments: Any) -> tuple[Any, ...]:
        del arguments
        return tuple(jnp.zeros(result.shape, result.dtype) for result in gives)

    with jax.enable_x64(True):  # else 64-bit numbers would be narrowed
        framed = jax.jit(frame, keep_unused=True)
        exported = jax.export.export(framed, platforms=("cpu",))(*takes)
        return bytes(replace(exported, mlir_module_serialized=portable(text)).serialize())


def portable(text: str) -> bytes:
    """Return StableHLO in the portable form of the code of an exported function.

    Raises:
        ProgramError: It has operations of other dialects.
    """
    # As jax does: any jax released in the four weeks before this one reads it, as do later ones.
    version = get_version_from_compatibility_requirement(StablehloCompatibilityRequirement.WEEK_4)
    with make_ir_context():
        try:
            return serialize_portable_artifact_str(text, version)
        except ValueError as error:
            raise ProgramError(
                f"jax cannot exchange the module ({_first_line(error)}): export .hlo or .pb"
            ) from error


def _structure(kind: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and type of a tensor.

    Raises:
        ProgramError: It is not a tensor, or numpy has no name for its element type.
    """
    try:
        tensor = ir.RankedTensorType(kind)
        return jax.ShapeDtypeStruct(tensor.shape, jnp.dtype(_DTYPES[str(tensor.element_type)]))
    except (ValueError, KeyError) as error:
        raise ProgramError(f"jax.export has no values of type {kind}: export .hlo or .pb") from error


_DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "i1": "bool",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
"""Names of types in numpy by their names in MLIR."""


def _from_text(source: str, content: bytes) -> bytes:
    try:
        module = load_engine().from_text(content.decode())
    except (UnicodeDecodeError, ProgramError) as error:
        raise ProgramError(f"{source} is no HLO text: {_first_line(error)}") from error
    if module.devices > 1:
        module.note_devices()
    return module.proto()


def _from_proto(source: str, content: bytes) -> bytes:
    problem = "it is empty"
    for candidate in (content, _first_field(content)):
        if candidate:
            try:
                module = _hlo.HloModule.from_serialized_hlo_module_proto(candidate)
                return module.as_serialized_hlo_module_proto()
            except jax.errors.JaxRuntimeError as error:
                problem = _first_line(error)
    raise ProgramError(f"{source} is neither an HloModuleProto nor an HloProto: {problem}")


def _from_stablehlo(source: str, content: bytes) -> bytes:
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            content, use_tuple_args=False, return_tuple=False
        )
    except jax.errors.JaxRuntimeError as error:
        raise ProgramError(f"{source} is no StableHLO: {_first_line(error)}") from error
    return computation.as_serialized_hlo_module_proto()


def _devices(source: str, content: bytes) -> tuple[int, int]:
    """Return the numbers of replicas and partitions of StableHLO.

    Raises:
        ProgramError: It is bytecode that cannot be read.
    """
    if not content.startswith(_BYTECODE):
        found = dict(re.findall(rb"mhlo\.num_(replicas|partitions) = (\d+)", content))
        return int(found.get(b"replicas", 1)), int(found.get(b"partitions", 1))
    with make_ir_context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(content)
        except ir.MLIRError:
            try:
                module = deserialize_portable_artifact(context, content)
            except ValueError as error:
                raise ProgramError(f"{source} is no StableHLO: {_first_line(error)}") from error
        attributes = module.operation.attributes
        names = "mhlo.num_replicas", "mhlo.num_partitions"
        replicas, partitions = (
            ir.IntegerAttr(attributes[name]).value if name in attributes else 1 for name in names
        )
    return replicas, partitions


_BYTECODE = b"ML\xefR"
"""First bytes of MLIR bytecode."""


def _first_field(content: bytes) -> bytes:
    """Return the bytes of field 1 of a protocol buffer that starts with this field, else nothing."""
    if content[:1] != b"\x0a":
        return b""
    length = shift = 0
    for place, byte in enumerate(content[1:11], start=2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return content[place : place + length]
    return b""


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
