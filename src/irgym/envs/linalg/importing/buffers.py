"""Conversion of functions on buffers to functions on tensors. Within `mlir`.

A buffer becomes the tensor of its current content: a write makes a new tensor, loops carry the tensors that
they change, and buffer arguments that are written to become results. Arguments are assumed not to alias.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.captures import captured, copied, within
from irgym.envs.linalg.compiling.contexts import run_passes

TO_LOOPS = "func.func(lower-affine,scf-forall-to-for,scf-parallel-for-to-nested-fors,canonicalize)"
"""Passes that turn all loops into `scf.for`."""

VIEWS = frozenset({"memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast"})
"""Operations whose result is a view of their first operand."""

READERS = frozenset({"func.call", "vector.transfer_read"})
"""Operations that accept a tensor instead of a buffer that they read."""


def has_buffers(function: Any) -> bool:
    """Say whether a function has buffers among its arguments or in its body."""
    return any(is_buffer(value) for value in _values(function))


def is_buffer(value: Any) -> bool:
    """Say whether a value is a buffer."""
    return _is_buffer_type(value.type)


def _is_buffer_type(kind: Any) -> bool:
    return isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType)


def _values(function: Any) -> Iterator[Any]:
    for operation in within(function.operation):
        yield from operation.results
        for region in operation.regions:
            for block in region.blocks:
                yield from block.arguments


def on_tensors(module: Any, entry: str, inputs: Sequence[Any], name: str) -> None:
    """Turn the buffers of a function into tensors, in place.

    Args:
        module: The module; its external functions are changed to take tensors too.
        entry: Name of the function, which calls no other function with a body.
        inputs: New types of its arguments.
        name: Name of the program in errors.

    Raises:
        ProgramError: An operation on a buffer has no counterpart on tensors.
    """
    run_passes(module, TO_LOOPS)
    functions = [operation for operation in module.body.operations if operation.operation.name == "func.func"]
    for function in functions:
        if function.is_external:
            kinds = function.type.inputs, function.type.results
            signature = ir.FunctionType.get(*([tensor_type(kind) for kind in types] for types in kinds))
            function.attributes["function_type"] = ir.TypeAttr.get(signature)
    [chosen] = [function for function in functions if function.name.value == entry]
    _Rewriter(module, chosen, name).rewrite(inputs)


def tensor_type(kind: Any) -> Any:
    """Return the tensor type of a buffer's content; other types are returned unchanged."""
    if isinstance(kind, ir.MemRefType):
        return ir.RankedTensorType.get(kind.shape, kind.element_type)
    if isinstance(kind, ir.UnrankedMemRefType):
        return ir.UnrankedTensorType.get(kind.element_type)
    return kind


def _made(name: str, kinds: Sequence[Any], operands: Sequence[Any], **attributes: Any) -> Any:
    return ir.Operation.create(name, results=list(kinds), operands=list(operands), attributes=attributes)


class _Rewriter:
    """Rewrites one function.

    Args:
        module: Module of the function.
        function: The function.
        name: Name of the program in errors.
    """

    def __init__(self, module: Any, function: Any, name: str) -> None:
        self._module = module
        self._function = function
        self._name = name
        self._known: dict[Any, Any] = {}
        """New values of those that are not buffers."""
        self._held: dict[Any, Any] = {}
        """Current content of each buffer that is not a view."""
        self._mirrors: dict[Any, Any] = {}
        """Buffers whose content, at the time of use, some tensors stand for."""
        self._written: set[Any] = set()
        self._others: Mapping[str, Callable[[Any], None]] = {
            "memref.alloc": self._allocated,
            "memref.alloca": self._allocated,
            "memref.dealloc": self._dropped,
            "memref.get_global": self._global,
            "memref.load": self._loaded,
            "memref.store": self._stored,
            "memref.copy": self._copied,
            "memref.dim": self._measured,
            "bufferization.to_buffer": self._to_buffer,
            "bufferization.to_tensor": self._to_tensor,
            "scf.for": self._loop,
            "scf.if": self._condition,
        }

    def rewrite(self, inputs: Sequence[Any]) -> None:
        """Replace the function by a new one with arguments of the given types."""
        old = self._function.regions[0].blocks[0]
        with ir.InsertionPoint(self._function):
            attributes = _attributes(self._function.operation)
            attributes.pop("arg_attrs", None)
            attributes.pop("res_attrs", None)
            new = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = new.regions[0].blocks.append(*inputs)
        for before, after in zip(old.arguments, block.arguments, strict=True):
            (self._held if is_buffer(before) else self._known)[before] = after
        *steps, ends = [view.operation for view in old.operations]
        with ir.InsertionPoint(block):
            for step in steps:
                self._step(step)
            returned = [self._value(value) for value in ends.operands]
            given = {self._root(value) for value in ends.operands if is_buffer(value)}
            returned += [
                self._held[argument] for argument in old.arguments if argument in self._written - given
            ]
            _made("func.return", [], returned)
        kinds = [value.type for value in block.arguments], [value.type for value in returned]
        new.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
        self._function.erase()

    def _step(self, operation: Any) -> None:
        name = str(operation.name)
        inside = list(within(operation))
        touched = any(is_buffer(value) for part in inside for value in (*part.operands, *part.results))
        if name in VIEWS:
            return  # made where it is read or written
        if name in self._others and (touched or not operation.regions):
            self._others[name](operation)
        elif not touched or name in READERS:
            values = {value: self._value(value) for value in captured(operation)}
            copy = copied(operation, values)
            self._known |= zip(operation.results, copy.results, strict=True)
        elif name.startswith("linalg.") and not any(
            is_buffer(operand) for part in inside[1:] for operand in part.operands
        ):
            self._computed(operation)
        else:
            raise ProgramError(
                f"{self._name}: {self._culprit(inside)} works on buffers and has no counterpart on tensors: "
                "give the program on tensors, before bufferisation"
            )

    def _culprit(self, inside: Sequence[Any]) -> str:
        """Return the name of the innermost unsupported operation."""
        unknown = [
            str(inner.name)
            for inner in inside
            if any(map(is_buffer, (*inner.operands, *inner.results)))
            and inner.name not in {*self._others, *VIEWS, *READERS}
        ]
        return unknown[-1] if unknown else str(inside[0].name)

    def _value(self, value: Any) -> Any:
        """Return the new value for a value; for a buffer, its current content."""
        if value in self._mirrors:
            return self._read(self._mirrors[value])
        return self._read(value) if is_buffer(value) else self._known[value]

    def _root(self, buffer: Any) -> Any:
        """Return the buffer that `buffer` is a view of, or `buffer` itself."""
        owner = buffer.owner
        if isinstance(owner, ir.Block) or owner.name not in VIEWS:
            return buffer
        return self._root(owner.operands[0])

    def _read(self, buffer: Any) -> Any:
        """Return the current content of a buffer."""
        if buffer in self._held:
            return self._held[buffer]
        if isinstance(buffer.owner, ir.Block) or buffer.owner.name not in VIEWS:
            raise ProgramError(
                f"{self._name} hands buffers from one iteration or branch to another: give the program on "
                "tensors, before bufferisation"
            )
        view = buffer.owner.operation
        source, kind = self._read(view.operands[0]), tensor_type(buffer.type)
        if view.name == "memref.cast":
            return _cast(source, kind)
        sizes = [self._value(size) for size in list(view.operands)[1:]]
        name = "tensor.extract_slice" if view.name == "memref.subview" else f"tensor.{_kind(view)}"
        return _made(name, [kind], [source, *sizes], **_attributes(view)).results[0]

    def _write(self, buffer: Any, value: Any) -> None:
        """Make a tensor the content of a buffer."""
        if buffer in self._held:
            self._held[buffer] = _cast(value, self._held[buffer].type)
            self._written.add(buffer)
            return
        whole = self._read(self._source(buffer))
        view = buffer.owner.operation
        if view.name == "memref.subview":
            offsets = [self._value(offset) for offset in list(view.operands)[1:]]
            attributes = _attributes(view)
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
                [1, *attributes["operandSegmentSizes"]]
            )
            value = _made(
                "tensor.insert_slice", [whole.type], [value, whole, *offsets], **attributes
            ).results[0]
        elif view.name == "memref.expand_shape":
            kept = {"reassociation": view.attributes["reassociation"]}
            value = _made("tensor.collapse_shape", [whole.type], [value], **kept).results[0]
        elif view.name == "memref.collapse_shape":
            if not whole.type.has_static_shape:
                raise ProgramError(f"{self._name} writes through a reshape of unknown sizes: fix every size")
            shape = ir.DenseI64ArrayAttr.get(list(whole.type.shape))
            kept = {"reassociation": view.attributes["reassociation"], "static_output_shape": shape}
            value = _made("tensor.expand_shape", [whole.type], [value], **kept).results[0]
        self._write(view.operands[0], _cast(value, whole.type))

    def _source(self, buffer: Any) -> Any:
        self._read(buffer)  # raises an error unless it is a view
        return buffer.owner.operands[0]

    def _allocated(self, operation: Any) -> None:
        sizes = [self._value(size) for size in operation.operands]
        kind = tensor_type(operation.results[0].type)
        self._held[operation.results[0]] = _made("tensor.empty", [kind], sizes).results[0]

    def _dropped(self, operation: Any) -> None:
        pass

    def _global(self, operation: Any) -> None:
        named = operation.attributes["name"].value
        [found] = [
            member.operation
            for member in self._module.body.operations
            if member.operation.name == "memref.global"
            and member.operation.attributes["sym_name"].value == named
        ]
        value = found.attributes.get("initial_value", None)
        if not isinstance(value, ir.DenseElementsAttr):
            raise ProgramError(
                f"{self._name} reads the global @{named}, which has no value: make it an argument"
            )
        kind = tensor_type(operation.results[0].type)
        self._held[operation.results[0]] = _made("arith.constant", [kind], [], value=value).results[0]

    def _loaded(self, operation: Any) -> None:
        buffer, *indices = operation.operands
        operands = [self._read(buffer), *map(self._value, indices)]
        self._known[operation.results[0]] = _made(
            "tensor.extract", [operation.results[0].type], operands
        ).results[0]

    def _stored(self, operation: Any) -> None:
        value, buffer, *indices = operation.operands
        whole = self._read(buffer)
        operands = [self._value(value), whole, *map(self._value, indices)]
        self._write(buffer, _made("tensor.insert", [whole.type], operands).results[0])

    def _copied(self, operation: Any) -> None:
        source, target = operation.operands
        self._write(target, _cast(self._read(source), tensor_type(target.type)))

    def _measured(self, operation: Any) -> None:
        operands = [self._value(operand) for operand in operation.operands]
        self._known[operation.results[0]] = _made(
            "tensor.dim", [operation.results[0].type], operands
        ).results[0]

    def _to_buffer(self, operation: Any) -> None:
        self._held[operation.results[0]] = self._value(operation.operands[0])

    def _to_tensor(self, operation: Any) -> None:
        self._mirrors[operation.results[0]] = operation.operands[0]

    def _computed(self, operation: Any) -> None:
        """Write a linalg operation on tensors."""
        outputs = _outputs(operation)
        operands = [self._value(operand) for operand in operation.operands]
        kinds = [operand.type for operand in operands[len(operands) - len(outputs) :]]
        regions = len(operation.regions)
        new = ir.Operation.create(operation.name, kinds, operands, _attributes(operation), regions=regions)
        for before, after in zip(operation.regions, new.regions, strict=True):
            before.blocks[0].append_to(after)
        for inner in list(within(new))[1:]:
            for place, operand in enumerate(inner.operands):
                if operand in self._known:
                    inner.operands[place] = self._known[operand]
        for buffer, result in zip(outputs, new.results, strict=True):
            self._write(buffer, result)

    def _changed(self, operation: Any) -> list[Any]:
        """Return the outer buffers that operations nested in an operation write to."""
        found: list[Any] = []
        for inner in within(operation):
            for buffer in _targets(inner):
                root = self._root(buffer)
                if root in self._held and root not in found:
                    found.append(root)
        return found

    def _loop(self, operation: Any) -> None:
        changed = self._changed(operation)
        bounds = [self._value(operand) for operand in list(operation.operands)[:3]]
        carried = [self._value(operand) for operand in list(operation.operands)[3:]]
        carried += [self._held[buffer] for buffer in changed]
        kinds = [value.type for value in carried]
        loop = ir.Operation.create("scf.for", kinds, [*bounds, *carried], regions=1)
        block = loop.regions[0].blocks.append(bounds[0].type, *kinds)
        old = operation.regions[0].blocks[0]
        count = len(old.arguments)
        self._known |= zip(old.arguments, list(block.arguments)[:count], strict=True)
        inside = zip(changed, list(block.arguments)[count:], strict=True)
        self._branch(old, block, changed, dict(inside))
        self._after(operation, loop, changed)

    def _condition(self, operation: Any) -> None:
        changed = self._changed(operation)
        kinds = [
            *(value.type for value in operation.results),
            *(self._held[buffer].type for buffer in changed),
        ]
        condition = self._value(operation.operands[0])
        choice = ir.Operation.create("scf.if", kinds, [condition], regions=2)
        for before, after in zip(operation.regions, choice.regions, strict=True):
            old = before.blocks[0] if len(before.blocks) else None
            self._branch(
                old, after.blocks.append(), changed, {buffer: self._held[buffer] for buffer in changed}
            )
        self._after(operation, choice, changed)

    def _branch(self, old: Any | None, new: Any, changed: Sequence[Any], held: Mapping[Any, Any]) -> None:
        """Write a block that yields its values and the contents of the changed buffers."""
        before = dict(self._held)
        self._held |= held
        *steps, ends = [view.operation for view in old.operations] if old is not None else [None]
        with ir.InsertionPoint(new):
            for step in steps:
                self._step(step)
            values = [self._value(operand) for operand in ends.operands] if ends is not None else []
            _made("scf.yield", [], [*values, *(self._held[buffer] for buffer in changed)])
        self._held = before

    def _after(self, operation: Any, new: Any, changed: Sequence[Any]) -> None:
        count = len(operation.results)
        self._known |= zip(operation.results, list(new.results)[:count], strict=True)
        for buffer, result in zip(changed, list(new.results)[count:], strict=True):
            self._write(buffer, result)


def _kind(operation: Any) -> str:
    return str(operation.name).partition(".")[2]


def _attributes(operation: Any) -> dict[str, Any]:
    return {name: operation.attributes[name] for name in operation.attributes}


def _cast(value: Any, kind: Any) -> Any:
    """Return a tensor cast to another type with the same elements."""
    return value if value.type == kind else _made("tensor.cast", [kind], [value]).results[0]


def _outputs(operation: Any) -> list[Any]:
    """Return the buffers that a linalg operation writes to."""
    operands = list(operation.operands)
    if "operandSegmentSizes" in operation.attributes:
        count = list(operation.attributes["operandSegmentSizes"])[-1]
    else:
        count = len(operands) // 2 if operation.name == "linalg.reduce" else 1
    return operands[len(operands) - count :]


def _targets(operation: Any) -> list[Any]:
    """Return the buffers that an operation writes to, nested operations aside."""
    if operation.name in ("memref.store", "memref.copy"):
        return [operation.operands[1]]
    if str(operation.name).startswith("linalg.") and any(map(is_buffer, operation.operands)):
        return _outputs(operation)
    return []
