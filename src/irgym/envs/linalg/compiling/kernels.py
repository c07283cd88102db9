"""Kernels: loops of a large program as functions of their own. Imported in a child only.

LLVM's time grows faster than a function does. Networks use the same layer again and again, too, and equal
kernels are one.
"""

from typing import Any

from irgym.envs.linalg.compiling.bindings import func, ir
from irgym.envs.linalg.compiling.captures import captured, copied

MANY = 16
"""Least number of loops, one after the other, that become kernels."""

KERNEL = "kernel"
"""Name of a kernel in a module of its own."""

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
"""Calls, and operations that find memory without looking into it."""

SUNK = frozenset({"arith.constant", "ub.poison"})
"""Operations that are copied into kernels; what else these use becomes arguments."""


def make_kernels(module: Any, function: Any) -> None:
    """Make kernels of the loops that a function consists of, in place, if they are many.

    Args:
        module: The module of the function.
        function: What has become loops over buffers.
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
    """Return a function of a loop, whose arguments are what is passed to it."""
    with ir.InsertionPoint(module.body):
        kernel = func.FuncOp(KERNEL, ([value.type for value in passed], []), visibility="private")
        # Else LLVM would put it back to where it is called.
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
    """Leave declarations of a program's kernels, and return each as a module, by name."""
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
    """Say whether a function only calls others and finds memory for them.

    To optimise it gains nothing then, and takes LLVM long where arguments are many.
    """
    names = {str(view.operation.name) for view in function.regions[0].blocks[0].operations}
    return names <= FINDING
