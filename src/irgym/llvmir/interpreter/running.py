"""Execution of translated blocks, and calls of the functions of a module."""

from dataclasses import dataclass, field

from irgym.llvmir.interpreter.calls import Call
from irgym.llvmir.interpreter.intrinsics import Site
from irgym.llvmir.interpreter.making import Making
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Endless, Undefined
from irgym.llvmir.interpreter.program import Code
from irgym.llvmir.interpreter.traces import Trace
from irgym.llvmir.interpreter.translate import translated

DEEPEST = 24
"""Greatest depth of nested calls."""


@dataclass
class Running(Making):
    """A run, but for what calls of external functions do.

    Attributes:
        result: What the function that ended last returned.
        edges: Branches taken, as pairs of block numbers.
        seen: Last operands of comparisons, by result.
        entered: Blocks entered, where runs record those of all functions.
        deepest: Greatest depth of nested calls.
    """

    result: Value = None
    edges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    seen: dict[str, tuple[Value, Value]] = field(default_factory=dict[str, tuple[Value, Value]])
    entered: set[int] = field(default_factory=set[int])
    deepest: int = DEEPEST
    _depth: int = 0

    def executed(self, code: Code, arguments: tuple[Value, ...], blocks: set[int]) -> Value:
        """Run a function on some arguments and return its result; adds the numbers of the blocks entered."""
        values: list[Value] = [None] * len(code.numbers)
        values[: len(arguments)] = arguments
        number = 0
        while number >= 0:
            blocks.add(code.base + number)
            run, cost = code.blocks.get(number) or translated(self.program, code, number)
            self.steps -= cost
            if self.steps < 0:
                raise Endless("it takes too many steps")
            number = run(values, self)
        return self.result

    def call(self, site: Site, arguments: tuple[Value, ...], invoked: bool = False) -> Value:
        """Call a function: an intrinsic, a function of the module, or an external function."""
        if site.intrinsic is not None:
            return site.intrinsic(self, site.call, arguments)
        name = site.call.callee
        target: object = name
        if name.startswith("%"):
            target, *rest = arguments
            arguments = tuple(rest)
            if target is POISON or target == 0:
                raise Undefined("a call through null or poison")
            name = self.program.named(int(target))  # pyright: ignore[reportArgumentType]
            target = name or target
        elif name.startswith("@") and name not in self.program.module.functions:
            name = self.program.named(self.program.address(name)) or name
        if name not in self.program.module.functions:
            name = self.program.resolved(name)
        if name in self.program.module.functions and not self.world.alone:
            return self._defined(name, arguments)
        return self.external(site.call, target, arguments, invoked)

    def _defined(self, name: str, arguments: tuple[Value, ...]) -> Value:
        code = self.program.code(name)
        if len(arguments) < len(code.parameters):
            raise Undefined("a call with too few arguments")
        if self._depth >= self.deepest:
            raise Endless("calls within each other do not end")
        self._depth += 1
        passed = tuple(map(self._passed, code.parameters, arguments))
        try:
            return self.executed(code, passed, self.entered if self.program.rules.exact else set())
        finally:
            self._depth -= 1

    def _passed(self, parameter: Operand, value: Value) -> Value:
        kind = parameter.named("byval")
        if kind is None:
            return value
        size = self.program.layout.size(kind)
        address = self.variable(size)
        self.copied(address, value, size)
        return address

    def run(self, code: Code) -> Trace:
        """Run a function on random arguments.

        Raises:
            Undefined: It has no defined behaviour.
            Unsupported: It does what the interpreter cannot.
            Endless: It takes too many steps.
            Differs: Its behaviour differs from the reference.
        """
        raise NotImplementedError

    def external(self, call: Call, target: object, arguments: tuple[Value, ...], invoked: bool) -> Value:
        """Call an external function.

        Args:
            call: The call.
            target: Name of the function, or its address where it has none.
            arguments: The arguments.
            invoked: Whether the caller handles exceptions.
        """
        raise NotImplementedError
