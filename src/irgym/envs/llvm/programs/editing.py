"""Changes to modules before any pass: attributes removed, and all but one function. They run in a child."""

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from irgym.envs.llvm.compiling.library import Library, Module

_EXTERNAL, _LINK_ONCE, _APPENDING, _INTERNAL, _PRIVATE = 0, 2, 7, 8, 9
_FUNCTION_INDEX = 2**32 - 1
_RESERVED = "llvm."


class _Values:
    """Functions and variables of a module, through LLVM's C interface."""

    def __init__(self, library: Library, module: Module) -> None:
        self._library = library
        self._module = module

    def call(self, name: str, result: Any, *arguments: tuple[Any, Any]) -> Any:
        """Return the result of a function of LLVM; arguments are pairs of a type and a value."""
        bound: Callable[..., Any] = self._library.function(name, result, *(kind for kind, _ in arguments))
        return bound(*(value for _, value in arguments))

    def functions(self) -> Iterator[int]:
        """Yield the functions with bodies."""
        return self._listed("Function")

    def variables(self) -> Iterator[int]:
        """Yield the variables with initial values."""
        return self._listed("Global")

    def aliases(self) -> dict[str, int]:
        """Return the functions that other names stand for."""
        found = self.call("LLVMGetFirstGlobalAlias", c_void_p, (c_void_p, self._module.handle))
        named: dict[str, int] = {}
        while found:
            aliasee = self.call("LLVMAliasGetAliasee", c_void_p, (c_void_p, found))
            if self.call("LLVMIsAFunction", c_void_p, (c_void_p, aliasee)):
                named[self.name(found)] = aliasee
            found = self.call("LLVMGetNextGlobalAlias", c_void_p, (c_void_p, found))
        return named

    def name(self, value: int) -> str:
        """Return the name of a function or a variable."""
        length = c_size_t()
        start = self.call("LLVMGetValueName2", c_void_p, (c_void_p, value), (c_void_p, byref(length)))
        return ctypes.string_at(start, length.value).decode(errors="replace")

    def linkage(self, value: int) -> int:
        """Return the linkage of a function or a variable."""
        return self.call("LLVMGetLinkage", c_int, (c_void_p, value))

    def link(self, value: int, linkage: int) -> None:
        """Set the linkage of a function or a variable."""
        self.call("LLVMSetLinkage", None, (c_void_p, value), (c_int, linkage))

    def _listed(self, kind: str) -> Iterator[int]:
        found = self.call(f"LLVMGetFirst{kind}", c_void_p, (c_void_p, self._module.handle))
        while found:
            if not self.call("LLVMIsDeclaration", c_int, (c_void_p, found)):
                yield found
            found = self.call(f"LLVMGetNext{kind}", c_void_p, (c_void_p, found))


def defined(library: Library, module: Module) -> set[str]:
    """Return the names of the functions that a module defines, aliases included."""
    values = _Values(library, module)
    return {values.name(function) for function in values.functions()} | set(values.aliases())


def drop_optnone(library: Library, module: Module) -> None:
    """Remove the attribute under which LLVM skips a function; compilers set it at -O0."""
    values = _Values(library, module)
    kind = values.call(
        "LLVMGetEnumAttributeKindForName", c_uint, (c_char_p, b"optnone"), (c_size_t, len("optnone"))
    )
    for function in values.functions():
        values.call(
            "LLVMRemoveEnumAttributeAtIndex",
            None,
            (c_void_p, function),
            (c_uint, _FUNCTION_INDEX),
            (c_uint, kind),
        )


def set_processor(library: Library, module: Module, processor: str) -> None:
    """Let LLVM make code for a processor, in functions that name none."""
    values = _Values(library, module)
    name = b"target-cpu"
    for function in values.functions():
        place = ((c_void_p, function), (c_uint, _FUNCTION_INDEX), (c_char_p, name), (c_uint, len(name)))
        if values.call("LLVMGetStringAttributeAtIndex", c_void_p, *place) is None:
            values.call(
                "LLVMAddTargetDependentFunctionAttr",
                None,
                (c_void_p, function),
                (c_char_p, name),
                (c_char_p, processor.encode()),
            )


def keep_function(library: Library, module: Module, name: str) -> None:
    """Remove all that a function does not need, and give the functions that it calls internal linkage.

    Variables that remain keep their linkage: code elsewhere may write them.

    Args:
        library: LLVM.
        module: The module, changed in place.
        name: A name that `defined` returns.

    Raises:
        PassFailure: LLVM fails.
    """
    values = _Values(library, module)
    names = values.aliases() | {values.name(function): function for function in values.functions()}
    kept = names[name]
    for function in values.functions():
        values.link(function, _EXTERNAL if function == kept else _INTERNAL)
    linkages: dict[str, int] = {}
    for variable in values.variables():
        linkage = values.linkage(variable)
        if linkage not in (_APPENDING, _INTERNAL, _PRIVATE):
            linkages[values.name(variable)] = linkage
            values.link(variable, _LINK_ONCE)  # removed where unused; internal linkage would leave marks
    module.run("globaldce")
    for variable in values.variables():
        linkage = linkages.get(values.name(variable))
        if linkage is not None:
            values.link(variable, linkage)
