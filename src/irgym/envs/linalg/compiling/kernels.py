"""Kernels: loops of a large program as separate functions. Imported in a child only.

LLVM's time grows faster than linearly with the size of a function. Networks also repeat layers, and equal
kernels are compiled once.
"""

from typing import Any

from irgym.envs.linalg.compiling.bindings import func, ir
from irgym.envs.linalg.compiling.captures import captured, copied

MANY = 16
"""Least number of top-level loops that become kernels."""

KERNEL = "kernel"
"""Name of a kernel in a separate module."""

LOOPS = frozenset({"scf.for", "scf.parallel"})

FINDING = frozenset(
    {
        "arith.constant",
        "func.call",
        "func.return",
        "memref.alloc",
        "memref.cast",
        "memref.collapse_shape",
        "memref.dealloc",
        "memref.expand_shape",
        "memref.get_global",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.view",
    }
)
"""Calls, and operations that provide memory without accessing it."""

SUNK = frozenset({"arith.constant", "ub.poison"})
"""Operations that are copied into kernels; other captured values become arguments."""


def make_kernels(module: Any, function: Any) -> None:
    """Turn the top-level loops of a function into kernels, in place, if there are at least `MANY`.

    Args:
        module: The module of the function.
        function: A function of loops over buffers.
    """
    operations = [view.operation for view in function.regions[0].blocks[0].operations]
    loops = [
        operation for operation in operations if str(operation.name) in LOOPS and not len(operation.results)
    ]
    if len(loops) < MANY:
        return
    kernels: dict[str, Any] = {}
    for loop in loops:
        uses = captured(loop)
        sunk = [value for value in uses if _maker(value) in SUNK]
        passed = [value for value in uses if value not in sunk]
        kernel = _kernel(module, loop, sunk, passed)
        text = kernel.operation.get_asm(use_local_scope=True, assume_verified=True)
        known = kernels.setdefault(text, kernel)
        if known is kernel:
            kernel.attributes["sym_name"] = ir.StringAttr.get(f"{KERNEL}_{len(kernels)}")
        else:
            kernel.erase()
        with ir.InsertionPoint(loop):
            func.CallOp([], known.attributes["sym_name"].value, passed)
        loop.erase()


def _maker(value: Any) -> str:
    return "" if isinstance(value.owner, ir.Block) else str(value.owner.name)


def _kernel(module: Any, loop: Any, sunk: list[Any], passed: list[Any]) -> Any:
    """Return a function that runs a loop; its arguments are the values in `passed`."""
    with ir.InsertionPoint(module.body):
        kernel = func.FuncOp(KERNEL, ([value.type for value in passed], []), visibility="private")
        # Otherwise LLVM would inline it again.
        kernel.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
    block = kernel.add_entry_block()
    values = dict(zip(passed, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for value in sunk:
            values[value] = value.owner.operation.clone().results[value.result_number]
        copied(loop, values)
        func.ReturnOp([])
    return kernel


def take_kernels(module: Any) -> dict[str, str]:
    """Replace a program's kernels by declarations, and return each as a module, by name."""
    found: dict[str, str] = {}
    for function in list(module.body.operations):
        name = function.sym_name.value
        if name.startswith(f"{KERNEL}_"):
            with ir.InsertionPoint(function):
                func.FuncOp(name, function.type, visibility="private")
            function.attributes["sym_name"] = ir.StringAttr.get(KERNEL)
            del function.attributes["sym_visibility"]
            found[name] = function.operation.get_asm(use_local_scope=True, assume_verified=True)
            function.erase()
    return found


def computes_nothing(function: Any) -> bool:
    """Say whether a function only calls others and provides memory for them.

    Optimising such a function gains nothing, and takes LLVM long where there are many arguments.
    """
    names = {str(view.operation.name) for view in function.regions[0].blocks[0].operations}
    return names <= FINDING
