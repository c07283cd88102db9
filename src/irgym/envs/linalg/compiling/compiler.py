"""MLIR in this process: parse, apply transform scripts, lower to LLVM, compile. Call it from a child.

The lowering is the same for every schedule, the empty one included. Its order matters. Accumulators are
hoisted out of reduction loops while they are slices of tensors, and again when they are vectors; then slices
are folded into vector transfers. Vectors are broken up after bufferisation, one group of patterns after the
other, since all patterns at once do not terminate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irgym.core.target import Target
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import apply, apply_again, parse, run_passes
from irgym.envs.linalg.compiling.copies import copy_as_loops
from irgym.envs.linalg.compiling.gathers import gather_patches
from irgym.envs.linalg.compiling.kernels import computes_nothing, make_kernels, take_kernels
from irgym.envs.linalg.compiling.memory import share_memory
from irgym.envs.linalg.compiling.strides import keep_every_second, put_together
from irgym.envs.linalg.compiling.sums import LOOP, add_last
from irgym.envs.linalg.compiling.transpositions import (
    TRANSPOSE,
    transpose_by_blocks,
    transpose_where_packed,
)
from irgym.envs.linalg.scheduling.script import ANY, PATCHES, STRIDED, transform_module
from irgym.measure.target import host_target

ENTRY = "main"
"""Name of a program's function."""

FUNCTION = '!transform.op<"func.func">'


def _patterns(*names: str) -> str:
    listed = "".join(f"      transform.apply_patterns.{name}\n" for name in names)
    return f"    transform.apply_patterns to %function {{\n{listed}    }} : {FUNCTION}\n"


def _hoist(number: int) -> str:
    """Return a script that hoists loop invariants, including slices that loops carry."""
    match = f'transform.structured.match ops{{["scf.for"]}} in %function : ({FUNCTION}) -> {ANY}'
    return (
        f"    %loops{number} = {match}\n"
        f"    transform.apply_licm to %loops{number} : {ANY}\n"
        f"    %left{number} = {match}\n"
        f"    transform.loop.hoist_loop_invariant_subsets %left{number} : {ANY}\n"
        + _patterns("canonicalization")
        + f"    transform.apply_cse to %function : {FUNCTION}\n"
    )


_MATCH = (
    f'    %function = transform.structured.match ops{{["func.func"]}} in %module : ({ANY}) -> {FUNCTION}\n'
)

ON_TENSORS = transform_module(
    _MATCH
    + f"    transform.apply_cse to %function : {FUNCTION}\n"
    + _patterns("vector.reduction_to_contract")
    + _hoist(0)
    + _hoist(1)
    + _patterns("vector.reduction_to_contract", "vector.transfer_permutation_patterns")
    + _patterns("canonicalization", "tensor.fold_tensor_subset_ops_into_vector_transfers")
    + _hoist(2)
)
"""Script applied to a scheduled program before bufferisation."""


VECTORISE_STRIDED = transform_module(
    f"    %strided = transform.structured.match attributes {{{STRIDED}}} in %module : ({ANY}) -> {ANY}\n"
    f"    transform.structured.vectorize %strided : {ANY}\n"
)
"""Script that vectorises the operations to which `keep_every_second` gave slices."""


def _bufferisation(threads: int | None) -> str:
    """Return the passes that bring tensors to memory; results become arguments after the others.

    A result becomes an argument only where MLIR sees that it is an allocation. The loops that fill it carry
    the allocation until they are canonical; otherwise the result is copied at the end. Parallel tiles become
    loops here. Temporaries of a tile are allocated in the tile, since MLIR hoists no allocation out of a
    parallel loop. Loops of the program may yield a new tensor in each iteration.
    """
    forall = "scf-forall-to-for" if threads is None else "scf-forall-to-parallel"
    return (
        "eliminate-empty-tensors,empty-tensor-to-alloc-tensor,one-shot-bufferize{"
        "allow-return-allocs-from-loops bufferize-function-boundaries "
        "function-boundary-type-conversion=identity-layout-map},"
        "canonicalize,cse,"
        "buffer-results-to-out-params{hoist-static-allocs=true modify-public-functions=true},"
        f"canonicalize,cse,func.func({forall},buffer-hoisting,buffer-loop-hoisting),"
        "ownership-based-buffer-deallocation,canonicalize,buffer-deallocation-simplification,"
        "bufferization-lower-deallocations,cse,canonicalize"
    )


ON_VECTORS = transform_module(
    _MATCH
    + _patterns('vector.lower_contraction lowering_strategy = "outerproduct"')
    + _patterns("vector.transfer_permutation_patterns")
    + _patterns('vector.reorder_multi_reduction_dims lowering_strategy = "innerparallel"')
    + _patterns('vector.multi_reduction_flattening lowering_strategy = "innerparallel"')
    + _patterns('vector.multi_reduction_unrolling lowering_strategy = "innerparallel"')
    + _patterns('vector.split_transfer_full_partial split_transfer_strategy = "linalg-copy"')
    + _patterns("vector.transfer_to_scf max_transfer_rank = 1 full_unroll = true")
    + _patterns("vector.lower_transfer max_transfer_rank = 1")
    + _patterns("vector.lower_shape_cast")
    + _patterns('vector.lower_transpose lowering_strategy = "shuffle_1d"')
)
"""Script that breaks vectors of several dimensions up into vectors of one."""

TO_LOOPS = "func.func(convert-linalg-to-loops),canonicalize,cse"


def _to_llvm(threads: int | None) -> str:
    """Return the passes that lower loops to LLVM's dialect.

    Functions without an LLVM instruction, such as erf, are called for each element of a vector. Taking
    vectors apart for these calls needs a second conversion of vectors.
    """
    # Canonicalisation removes scopes of one block from parallel loops' bodies, where branches do not fit.
    parallel = "" if threads is None else f"convert-scf-to-openmp{{num-threads={threads}}},canonicalize,"
    calls = "" if threads is None else "convert-openmp-to-llvm,"
    return (
        f"convert-vector-to-scf,lower-affine,{parallel}convert-scf-to-cf,canonicalize,cse,"
        "expand-strided-metadata,lower-affine,convert-vector-to-llvm{enable-x86},convert-math-to-llvm,"
        "convert-math-to-libm,convert-vector-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
        f"finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,{calls}reconcile-unrealized-casts"
    )


SHORT_FLOATS = (
    "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},math-extend-to-supported-types,"
    "arith-expand{include-bf16=true}"
)
"""Passes that compute arithmetic on short floats in float32, rounded after each operation: few processors
compute with short floats."""

TO_BFLOAT = """llvm.func weak @__truncsfbf2(%x: f32) -> bf16 {
  %one = llvm.mlir.constant(1 : i32) : i32
  %width = llvm.mlir.constant(16 : i32) : i32
  %half = llvm.mlir.constant(32767 : i32) : i32
  %quiet = llvm.mlir.constant(32704 : i16) : i16
  %bits = llvm.bitcast %x : f32 to i32
  %high = llvm.lshr %bits, %width : i32
  %odd = llvm.and %high, %one : i32
  %step = llvm.add %half, %odd : i32
  %up = llvm.add %bits, %step : i32
  %cut = llvm.lshr %up, %width : i32
  %short = llvm.trunc %cut : i32 to i16
  %none = llvm.fcmp "uno" %x, %x : f32
  %chosen = llvm.select %none, %quiet, %short : i1, i16
  %result = llvm.bitcast %chosen : i16 to bf16
  llvm.return %result : bf16
}"""
"""Function that LLVM calls to build vectors of bfloat16; C libraries before GCC 13 lack it."""


def function_of(module: Any) -> Any:
    """Return the program's function."""
    return next(operation for operation in module.body.operations if str(operation.name) == f'"{ENTRY}"')


def _all(module: Any, names: frozenset[str]) -> list[Any]:
    """Return all operations with the given names, at any depth."""
    found: list[Any] = []

    def collect(operation: Any) -> Any:
        if str(operation.name) in names:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def _marked(module: Any, attribute: str) -> list[Any]:
    """Return all generic operations that have an attribute."""
    return [
        generic for generic in _all(module, frozenset({"linalg.generic"})) if attribute in generic.attributes
    ]


FUSED = frozenset({"arith.addf", "arith.subf", "arith.mulf"})
"""Operations that LLVM may fuse into multiply-adds."""


def _contract(module: Any) -> None:
    """Allow products and sums to fuse into multiply-adds, as vector contractions and libraries do."""
    contract = ir.Attribute.parse("#arith.fastmath<contract>")
    for operation in _all(module, FUSED):
        operation.attributes["fastmath"] = contract


def _keep_arguments(module: Any) -> None:
    """Forbid bufferisation to write to the program's arguments."""
    function = function_of(module)
    kept = ir.Attribute.parse("{bufferization.writable = false}")
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([kept] * len(function.arguments))


def bufferise(module: Any, threads: int | None) -> None:
    """Lower a scheduled program from tensors to memory, with loops over vectors, within `mlir`."""
    _keep_arguments(module)
    for gather in _marked(module, PATCHES):
        gather_patches(gather)
    for transpose in _all(module, frozenset({TRANSPOSE})):
        transpose_where_packed(transpose)
    strided = _marked(module, STRIDED)
    for generic in strided:
        keep_every_second(generic)
    if strided:
        apply_again(module, VECTORISE_STRIDED)
        for read in _all(module, frozenset({"vector.transfer_read"})):
            put_together(read)
    apply_again(module, ON_TENSORS)
    for loop in _all(module, frozenset({LOOP})):
        add_last(loop)
    run_passes(module, _bufferisation(threads))
    for copied in _all(module, frozenset({"memref.copy"})):
        copy_as_loops(copied)
    for transpose in _all(module, frozenset({TRANSPOSE})):
        transpose_by_blocks(transpose)
    apply_again(module, ON_VECTORS)
    run_passes(module, TO_LOOPS)


def scheduled(text: str, script: str) -> Any:
    """Return a program after a schedule, within `mlir`; an empty script changes nothing."""
    module = parse(text)
    if script:
        apply(module, script)
    return module


def lower(text: str, script: str, threads: int | None = None) -> Any:
    """Return a program in LLVM's dialect after a schedule, within `mlir`.

    Args:
        text: The program, its operations numbered.
        script: The schedule as a transform module; empty for none.
        threads: Threads that parallel loops run on; None makes them sequential.
    """
    module = scheduled(text, script)
    lower_module(module, threads)
    return module


@dataclass(frozen=True)
class Apart:
    """A program in LLVM's dialect without its kernels, which are separate modules.

    Attributes:
        module: The program, which calls the kernels.
        kernels: Texts of the kernels, by name.
        only_calls: Whether the program computes nothing outside of kernels.
    """

    module: Any
    kernels: Mapping[str, str]
    only_calls: bool


def lower_apart(module: Any, threads: int | None = None) -> Apart:
    """Lower a program as `lower_module` does, but take the kernels out before LLVM's dialect, in `mlir`."""
    to_memory(module, threads)
    kernels = take_kernels(module)
    only_calls = computes_nothing(function_of(module))
    to_llvm(module, threads)
    return Apart(module, kernels, only_calls)


def lower_module(module: Any, threads: int | None = None) -> None:
    """Lower a scheduled program to LLVM's dialect in place, within `mlir`."""
    to_memory(module, threads)
    to_llvm(module, threads)


def to_memory(module: Any, threads: int | None) -> None:
    """Lower a scheduled program to one block of memory, and to kernels if it is large, within `mlir`."""
    bufferise(module, threads)
    function = function_of(module)
    function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
    share_memory(function)
    make_kernels(module, function)


def to_llvm(module: Any, threads: int | None) -> None:
    """Lower loops over memory to LLVM's dialect in place, within `mlir`."""
    _contract(module)
    short = has_short_floats(module)
    if short:
        run_passes(module, SHORT_FLOATS)
    run_passes(module, _to_llvm(threads))
    if short:
        module.body.append(ir.Operation.parse(TO_BFLOAT))


def has_short_floats(module: Any) -> bool:
    """Say whether a module computes with bfloat16 or float16."""
    found = False

    def look(operation: Any) -> Any:
        nonlocal found
        for result in operation.results:
            kind = result.type
            element = kind.element_type if isinstance(kind, ir.VectorType) else kind
            found = found or isinstance(element, ir.BF16Type | ir.F16Type)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found


def make_for(module: Any, target: Target) -> None:
    """Set the target of a program in LLVM's dialect, in place, within `mlir`.

    Code for this machine's level is not restricted: it is for exactly this processor.
    """
    if target.name == host_target().name:
        return
    # The features too: without them LLVM uses those of the processor that it runs on.
    features = ", ".join(f'"+{LLVM_FEATURES.get(feature, feature)}"' for feature in target.features)
    for operation in _all(module, frozenset({"llvm.func"})):
        operation.attributes["target_cpu"] = ir.StringAttr.get(target.name)
        operation.attributes["target_features"] = ir.Attribute.parse(f"#llvm.target_features<[{features}]>")


def make_internal(function: Any) -> None:
    """Hide a function of LLVM's dialect from other modules, within `mlir`: engines add no wrapper to it."""
    function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


LLVM_FEATURES = {"abm": "lzcnt", "bmi1": "bmi"}
"""LLVM's names of features that differ from Linux's."""
