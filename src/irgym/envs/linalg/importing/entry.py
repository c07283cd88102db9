"""Conversion of a user's module to one function on tensors of fixed shapes. Within `mlir`.

Calls are inlined, buffers become tensors, scalars become tensors without dimensions, dynamic sizes are bound,
and the timers and prints of programs that time themselves are dropped.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.captures import within
from irgym.envs.linalg.compiling.contexts import parse, run_passes
from irgym.envs.linalg.importing.attention import write_attention
from irgym.envs.linalg.importing.buffers import has_buffers, on_tensors, tensor_type
from irgym.envs.linalg.importing.cleaning import operations, update_signature
from irgym.envs.linalg.importing.lowering import (
    lower,
    pass_undefined,
    printed,
    return_values,
    widen_signature,
)
from irgym.envs.linalg.importing.reading import TM_TO_LOOPS

WRAPPER = "irgym.wrapper"
"""Name of the function that calls the user's."""

_OBSERVERS = re.compile(r"(_mlir_ciface_)?(nanoTime|rtclock|print\w*)")
"""Functions of MLIR's runtime libraries that tell the time or print."""

_SCALARS = re.compile(r"i\d+|index|b?f\d+")


def entry_of(module: Any, name: str, wanted: str, sizes: Mapping[str, int]) -> Any:
    """Return a module with one function.

    Args:
        module: Module of the user's file.
        name: Name of the program in errors.
        wanted: Name of the function; empty for the one that no other function calls.
        sizes: Values of dynamic sizes: `arg0.1` is the second dimension of the first argument.

    Raises:
        ProgramError: There is no such function or more than one, or a size is unbound or not dynamic.
    """
    chosen = chosen_of(functions_of(module), name, wanted, sizes)
    for candidate, function in functions_of(module).items():
        visibility = "public" if candidate == chosen else "private"
        function.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
    run_passes(module, "inline,symbol-dce")
    entry, observers = functions_of(module)[chosen], _observers(module)
    if len(entry.regions[0].blocks) > 1:
        raise ProgramError(f"{name} has branches (cf): write loops and conditions as scf")
    write_attention(module)
    if any(operation.name.startswith("tm_tensor.") for operation in operations(entry)):
        run_passes(module, TM_TO_LOOPS)
    arguments = _bound([tensor_type(kind) for kind in entry.type.inputs], name, wanted, sizes)
    if has_buffers(entry):
        on_tensors(module, chosen, arguments, name)
        entry = functions_of(module)[chosen]
    if not _results(entry, observers):
        return_values(entry, printed(entry, observers))
    kept = _results(entry, observers)
    if not kept:
        raise ProgramError(
            f"{name}: @{chosen} returns nothing and prints no tensor: return tensors, or choose another "
            f"function, as in {name}{_query(sizes)}#NAME"
        )
    wrapper = _wrapper(entry, arguments, kept)
    entry.attributes["sym_visibility"] = ir.StringAttr.get("private")
    texts = [view.operation.get_asm(use_local_scope=True) for view in module.body.operations]
    module = parse("\n".join([*texts, wrapper]))
    run_passes(module, "inline,symbol-dce,func.func(lower-affine,convert-elementwise-to-linalg)")
    for operation in list(operations(module)):
        if _observes(operation, observers) and not list(operation.results):
            operation.erase()
        elif operation.name == "bufferization.alloc_tensor":
            _make_plain(operation)
    run_passes(module, "canonicalize")
    for operation in list(operations(module)):
        unused = not any(list(result.uses) for result in operation.results)
        if _observes(operation, observers) and unused:
            operation.erase()
    run_passes(module, "canonicalize,symbol-dce,cse,canonicalize")
    function = functions_of(module)[WRAPPER]
    _narrow_results(function)
    pass_undefined(function)
    widen_signature(function)
    lower(module)
    return module


def functions_of(module: Any) -> dict[str, Any]:
    """Return the functions of a module by name."""
    return {
        function.name.value: function
        for function in module.body.operations
        if function.operation.name == "func.func"
    }


def _observers(module: Any) -> frozenset[str]:
    """Return the names of the functions of MLIR's runtime libraries that tell the time or print."""
    return frozenset(
        name
        for name, function in functions_of(module).items()
        if function.is_external and _OBSERVERS.fullmatch(name)
    )


def is_public(function: Any) -> bool:
    """Say whether a function is public."""
    attributes = function.attributes
    return "sym_visibility" not in attributes or attributes["sym_visibility"].value == "public"


def chosen_of(functions: Mapping[str, Any], name: str, wanted: str, sizes: Mapping[str, int]) -> str:
    """Return the name of the function that is the program."""
    defined = [candidate for candidate, function in functions.items() if not function.is_external]
    if wanted:
        if wanted not in defined:
            raise ProgramError(f"{name} has no function @{wanted}: choose among {_named(defined) or 'none'}")
        return wanted
    roots = roots_of(functions)
    if len(roots) != 1:
        if not roots:
            raise ProgramError(f"{name} has no public function with a body: make one public")
        example = f"{name}{_query(sizes)}#{roots[0]}"
        raise ProgramError(f"{name} has several functions ({_named(roots)}): choose one, as in {example}")
    return roots[0]


def roots_of(functions: Mapping[str, Any]) -> list[str]:
    """Return the public functions that no other calls; those that a driver calls, if it is the only one."""
    defined = [candidate for candidate, function in functions.items() if not function.is_external]
    public = [candidate for candidate in defined if is_public(functions[candidate])]
    called = {callee for caller in defined for callee in _callees(functions[caller])}
    roots = [candidate for candidate in public if candidate not in called]
    if len(roots) == 1 and _drives(functions[roots[0]]):
        # For example, it calls the program in a loop and drops the results.
        callees = dict.fromkeys(callee for callee in _callees(functions[roots[0]]) if callee in defined)
        roots = list(callees) or roots
    return roots


def _drives(function: Any) -> bool:
    """Say whether a function is a driver: it takes and returns nothing, and prints no tensor."""
    shown = any(
        operation.name == "vector.print"
        or (
            operation.name == "func.call"
            and any(isinstance(value.type, _SHOWN) for value in operation.operands)
        )
        for operation in within(function.operation)
    )
    return not (shown or list(function.type.results) or list(function.type.inputs))


_SHOWN = ir.UnrankedTensorType | ir.UnrankedMemRefType
"""Types that MLIR's runtime libraries print."""


def _callees(function: Any) -> list[str]:
    calls = [operation for operation in within(function.operation) if operation.name == "func.call"]
    return [call.attributes["callee"].value for call in calls]


def _query(sizes: Mapping[str, int]) -> str:
    """Return the query of a URI that binds sizes."""
    words = "&".join(f"{size}={sizes[size]}" for size in sorted(sizes))
    return f"?{words}" if words else ""


def _bound(inputs: Sequence[Any], name: str, wanted: str, sizes: Mapping[str, int]) -> list[Any]:
    """Return the types of the arguments with all sizes bound.

    Raises:
        ProgramError: A dynamic size is unbound, or a name is not that of a dynamic size.
    """
    left = dict(sizes)
    bound: list[Any] = []
    missing: list[str] = []
    for place, kind in enumerate(inputs):
        if not isinstance(kind, ir.RankedTensorType):
            bound.append(kind)
            continue
        shape: list[int] = []
        for axis in range(kind.rank):
            size = f"arg{place}.{axis}"
            if not kind.is_dynamic_dim(axis):
                shape.append(kind.get_dim_size(axis))
            elif size in left:
                shape.append(left.pop(size))
            else:
                shape.append(1)
                missing.append(size)
        bound.append(ir.RankedTensorType.get(shape, kind.element_type))
    if left:
        raise ProgramError(f"{name} leaves no size {next(iter(left))} open: leave it out")
    if missing:
        query = _query({**dict.fromkeys(missing, 64), **sizes})
        function = f"#{wanted}" if wanted else ""
        raise ProgramError(f"{name} leaves sizes open: bind them, as in {name}{query}{function}")
    return bound


def _results(entry: Any, observers: frozenset[str]) -> list[int]:
    """Return the places of the results that depend on no timer."""
    block = entry.regions[0].blocks[0]
    timed: list[Any] = []
    for operation in within(entry.operation):
        if _observes(operation, observers) or any(operand in timed for operand in operation.operands):
            timed += operation.results
    ends = block.operations[len(block.operations) - 1]
    return [place for place, value in enumerate(ends.operands) if value not in timed]


def _observes(operation: Any, observers: frozenset[str]) -> bool:
    """Say whether an operation tells the time or prints."""
    if operation.name == "func.call":
        return operation.attributes["callee"].value in observers
    return operation.name == "vector.print"


def _wrapper(entry: Any, arguments: Sequence[Any], kept: Sequence[int]) -> str:
    """Return the text of a function on tensors that calls the entry."""
    lines: list[str] = []
    given: list[str] = []
    parameters: list[str] = []
    for place, (kind, bound) in enumerate(zip(entry.type.inputs, arguments, strict=True)):
        source = f"%a{place}"
        parameters.append(f"{source}: {_as_tensor(bound)}")
        if _SCALARS.fullmatch(str(kind)):
            lines.append(f"%g{place} = tensor.extract {source}[] : tensor<{kind}>")
        elif kind != bound:
            lines.append(f"%g{place} = tensor.cast {source} : {bound} to {kind}")
        else:
            given.append(source)
            continue
        given.append(f"%g{place}")
    kinds = list(entry.type.results)
    types = f"({', '.join(map(str, entry.type.inputs))}) -> ({', '.join(map(str, kinds))})"
    callee = f'"{entry.name.value}"'
    lines.append(f"%r:{len(kinds)} = func.call @{callee}({', '.join(given)}) : {types}")
    results: list[str] = []
    for place in kept:
        if _SCALARS.fullmatch(str(kinds[place])):
            lines.append(f"%t{place} = tensor.from_elements %r#{place} : tensor<{kinds[place]}>")
            results.append(f"%t{place}")
        else:
            results.append(f"%r#{place}")
    returned = ", ".join(_as_tensor(kinds[place]) for place in kept)
    lines.append(f"func.return {', '.join(results)} : {returned}")
    body = "\n  ".join(lines)
    return f'func.func @"{WRAPPER}"({", ".join(parameters)}) -> ({returned}) {{\n  {body}\n}}'


def _as_tensor(kind: Any) -> str:
    return f"tensor<{kind}>" if _SCALARS.fullmatch(str(kind)) else str(kind)


def _make_plain(allocation: Any) -> None:
    """Replace an allocated tensor by an uninitialised one, or by the tensor that it copies."""
    copied = [operand for operand in allocation.operands if isinstance(operand.type, ir.ShapedType)]
    if not copied:
        with ir.InsertionPoint(allocation):
            kind, sizes = allocation.results[0].type, list(allocation.operands)
            copied = list(ir.Operation.create("tensor.empty", results=[kind], operands=sizes).results)
    allocation.results[0].replace_all_uses_with(copied[0])
    allocation.erase()


def _narrow_results(function: Any) -> None:
    """Change a function to return tensors of fixed shapes where these are known, in place."""
    block = function.regions[0].blocks[0]
    ends = block.operations[len(block.operations) - 1]
    for place, value in enumerate(ends.operands):
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name == "tensor.cast":
            ends.operands[place] = owner.operands[0]
    update_signature(function)


def _named(names: Sequence[str]) -> str:
    return listed([f"@{function}" for function in names])


def listed(names: Sequence[str]) -> str:
    """Return the first few distinct names, in order, as text."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:4]) + (", ..." if len(distinct) > 4 else "")
