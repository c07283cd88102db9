"""LLVM IR of kernels, as text.

A kernel already has the shape of the final machine code, so the IR needs no optimisation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Prefetch, Repeat, Tile

Pointers = tuple[str, str, str]
"""Names of the values that point into A, B and C."""


class Number(NamedTuple):
    """A type of numbers in LLVM IR.

    Attributes:
        type: Its name; bfloat16 is the bits of one.
        suffix: Its name in those of intrinsics.
        bytes: Bytes of a number.
    """

    type: str
    suffix: str
    bytes: int

    @property
    def zero(self) -> str:
        """The constant 0."""
        return "0" if self.type.startswith("i") else "0.0"


FLOAT, DOUBLE, INT32 = Number("float", "f32", 4), Number("double", "f64", 8), Number("i32", "i32", 4)

NUMBERS = {
    "f32": (FLOAT, FLOAT),
    "f64": (DOUBLE, DOUBLE),
    "bf16": (Number("i16", "i16", 2), FLOAT),
    "i8": (Number("i8", "i8", 1), INT32),
}
"""Types of the inputs and of the sums, by the name of the elements."""

ONES = {"f32": "1.0", "f64": "1.0", "bf16": "16256", "i8": "1"}
"""The number 1 in the type of the inputs, by the name of the elements."""


def emit(kernel: Kernel, name: str, repetitions: bool) -> str:
    """Return the textual LLVM IR of a kernel.

    Args:
        kernel: What to emit.
        name: Name of the function.
        repetitions: Whether the function takes, after the pointers to A, B and C, an int64 with the number of
            runs, at least one, and a pointer to the workspace. Otherwise it runs once and each thread has a
            static workspace, and there is no pointer to a B that is the number 1.
    """
    last = ", i64 %repetitions, ptr noalias %workspace" if repetitions else ""
    body = _Body(kernel, "%b" if repetitions or kernel.inputs > 1 else "@one")
    body.write("%repetitions" if repetitions else None)
    static = kernel.workspace and not repetitions
    given = repetitions or kernel.inputs > 1
    parameters = f"ptr noalias %a, {'ptr noalias %b, ' if given else ''}ptr noalias %c{last}"
    number, total = NUMBERS[kernel.elements.name]
    unit = f"@one = private unnamed_addr constant {number.type} {ONES[kernel.elements.name]}, align 64"
    return "\n".join(
        [
            *([_static_workspace(kernel)] if static else []),
            *([] if given else [unit]),
            f"define void @{name}({parameters})"
            f' nounwind "prefer-vector-width"="{8 * total.bytes * kernel.lanes}" {{',
            "entry:",
            *(["  %workspace = call ptr @llvm.threadlocal.address.p0(ptr @workspace)"] if static else []),
            *body.lines,
            "  ret void",
            "}",
            *_declarations(kernel),
        ]
    )


def _static_workspace(kernel: Kernel) -> str:
    kind = NUMBERS[kernel.elements.name][0].type
    return (
        f"@workspace = internal thread_local global [{kernel.workspace} x {kind}] zeroinitializer, align 64\n"
        "declare ptr @llvm.threadlocal.address.p0(ptr)"
    )


def _declarations(kernel: Kernel) -> list[str]:
    memory = [
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    lanes = kernel.lanes
    number, total = NUMBERS[kernel.elements.name]
    if lanes == 1:
        kind = total.type
        return (
            memory
            if total is INT32
            else [*memory, f"declare {kind} @llvm.fmuladd.{total.suffix}({kind}, {kind}, {kind})"]
        )
    vector, mask = f"<{lanes} x {total.type}>", f"<{lanes} x i1>"
    sums = (
        [f"declare i32 @llvm.vector.reduce.add.v{lanes}i32({vector})"]
        if total is INT32
        else [
            f"declare {vector} @llvm.fmuladd.v{lanes}{total.suffix}({vector}, {vector}, {vector})",
            f"declare {total.type} @llvm.vector.reduce.fadd.v{lanes}{total.suffix}({total.type}, {vector})",
        ]
    )
    for kind in dict.fromkeys((number, total)):
        of, suffix = f"<{lanes} x {kind.type}>", f"v{lanes}{kind.suffix}"
        moves = [
            f"declare {of} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {of})",
            f"declare void @llvm.masked.store.{suffix}.p0({of}, ptr, i32, {mask})",
        ]
        sums = [sums[0], *moves, *sums[1:]] if total is not INT32 else [*sums, *moves]
    return [*memory, *sums]


class _Body:
    """The body of a function as it is being written.

    Attributes:
        lines: Instructions and labels so far.
        label: The current basic block; the phi nodes of its successors name it.
    """

    def __init__(self, kernel: Kernel, b: str) -> None:
        self.kernel = kernel
        self.b = b
        self.input, self.sum = NUMBERS[kernel.elements.name]
        self.output = self.sum  # type behind pointer C, which points to copies while inputs are packed
        self.vector = self._vector(self.sum)
        self.zero = "zeroinitializer" if kernel.lanes > 1 else self.sum.zero
        self.lines: list[str] = []
        self.label = "entry"
        self._names = 0

    def _vector(self, number: Number) -> str:
        lanes = self.kernel.lanes
        return f"<{lanes} x {number.type}>" if lanes > 1 else number.type

    def _suffix(self, number: Number) -> str:
        return f"v{self.kernel.lanes}{number.suffix}" if self.kernel.lanes > 1 else number.suffix

    def write(self, repetitions: str | None) -> None:
        """Write the kernel, in a loop if `repetitions` names the value that holds the number of runs."""
        if repetitions is None:
            self._once()
        else:
            self._loop(repetitions, [], [], lambda _: self._once())

    def _once(self) -> list[str]:
        if self.kernel.clear:
            align = self.sum.bytes
            size = align * self.kernel.clear
            self._line(f"call void @llvm.memset.p0.i64(ptr align {align} %c, i8 0, i64 {size}, i1 false)")
        return self._nodes(self.kernel.body, ("%a", self.b, "%c"), [])

    def _line(self, instruction: str) -> None:
        self.lines.append("  " + instruction)

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def _value(self, expression: str) -> str:
        """Write an instruction and return the name of its result."""
        name = self._name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def _at(self, pointer: str, offset: int, number: Number) -> str:
        """Return a pointer moved by a number of elements."""
        return self._value(f"getelementptr {number.type}, ptr {pointer}, i64 {offset}") if offset else pointer

    def _loop(
        self,
        count: int | str,
        types: Sequence[str],
        starts: Sequence[str],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:
        """Write a loop that runs at least once.

        Args:
            count: Number of iterations, or the value that holds it.
            types: Types of the loop-carried values.
            starts: Those values before the first iteration.
            body: Writes an iteration: takes the values before it, returns the values after it.

        Returns:
            The values after the last iteration.
        """
        before = self.label
        loop = self._name()
        self.label = f"{loop[1:]}.body"
        self._line(f"br label %{self.label}")
        self.lines.append(f"{self.label}:")
        place = len(self.lines)
        names = [self._name() for _ in starts]
        ends = body(list(names))
        latch = self.label
        # The phi nodes name the values after an iteration, so they are inserted last.
        phis = zip((*types, "i64"), (*names, loop), (*starts, "0"), (*ends, f"{loop}.next"), strict=True)
        self.lines[place:place] = [
            f"  {name} = phi {kind} [ {start}, %{before} ], [ {end}, %{latch} ]"
            for kind, name, start, end in phis
        ]
        self._line(f"{loop}.next = add nuw nsw i64 {loop}, 1")
        self._line(f"{loop}.again = icmp ult i64 {loop}.next, {count}")
        self._line(f"br i1 {loop}.again, label {loop}.body, label {loop}.exit")
        self.label = f"{loop[1:]}.exit"
        self.lines.append(f"{self.label}:")
        return ends

    def _nodes(self, nodes: Sequence[Node], pointers: Pointers, sums: list[str]) -> list[str]:
        """Write nodes in order and return the values of the accumulators after them."""
        for node in nodes:
            match node:
                case Block():
                    sums = self._block(node, pointers, sums)
                case Repeat():
                    sums = self._repeat(node, pointers, sums)
                case Tile():
                    self._tile(node, pointers)
                case Pack():
                    self._pack(node, pointers)
                case Copy():
                    self._copy(node, pointers)
                case Prefetch():
                    self._prefetch(node, pointers)
        return sums

    def _pack(self, pack: Pack, pointers: Pointers) -> None:
        copy = self._at("%workspace", pack.place, self.input)
        self.output = self.input
        self._nodes(pack.copy, (pointers[0], pointers[1], copy), [])
        self.output = self.sum
        a, b = (copy if place == pack.operand else pointers[place] for place in range(2))
        self._nodes(pack.body, (a, b, pointers[2]), [])

    def _copy(self, copy: Copy, pointers: Pointers) -> None:
        for source, destination, lanes, width in copy.moves:
            if lanes:
                value = self._load(self._at(pointers[copy.operand], source, self.input), lanes, self.input)
            else:
                value = "zeroinitializer" if self.kernel.lanes > 1 else self.input.zero
            self._store(value, self._at(pointers[2], destination, self.input), width, self.input)

    def _repeat(self, repeat: Repeat, pointers: Pointers, sums: list[str]) -> list[str]:
        def iteration(values: list[str]) -> list[str]:
            a, b, c, *inside = values
            after = self._nodes(repeat.body, (a, b, c), inside)
            numbers = (self.input, self.input, self.output)
            moved = [
                self._at(pointer, stride, number)
                for pointer, stride, number in zip((a, b, c), repeat.strides, numbers, strict=True)
            ]
            return [*moved, *after]

        types = [*["ptr"] * 3, *[self.vector] * len(sums)]
        return self._loop(repeat.count, types, [*pointers, *sums], iteration)[3:]

    def _prefetch(self, node: Prefetch, pointers: Pointers) -> None:
        # Whether to write, and how near, from 0 to 3.
        number, how = (self.output, "i32 1, i32 3") if node.operand == 2 else (self.input, "i32 0, i32 2")
        for offset in node.offsets:
            place = self._at(pointers[node.operand], offset, number)
            self._line(f"call void @llvm.prefetch.p0(ptr {place}, {how}, i32 1)")

    def _tile(self, tile: Tile, pointers: Pointers) -> None:
        sums = self._nodes(tile.body, pointers, [self.zero] * len(tile.accumulators))
        for part, value in zip(tile.accumulators, sums, strict=True):
            place = self._at(pointers[2], part.c, self.sum)
            if self.kernel.sum_lanes:
                self._store_sum(value, place, tile.add)
            elif tile.add:
                before = self._load(place, part.lanes, self.sum)
                add = "add" if self.sum is INT32 else "fadd"
                total = self._value(f"{add} {self.vector} {before}, {value}")
                self._store(total, place, part.lanes, self.sum)
            else:
                self._store(value, place, part.lanes, self.sum)

    def _block(self, block: Block, pointers: Pointers, sums: list[str]) -> list[str]:
        loaded: dict[tuple[str, int, int], str] = {}

        def operand(pointer: str, offset: int, lanes: int, vector: bool) -> str:
            key = pointer, offset, lanes
            if key not in loaded:
                place = self._at(pointer, offset, self.input)
                loaded[key] = (
                    self._widened(self._load(place, lanes, self.input), self.kernel.lanes)
                    if vector
                    else self._broadcast(place, lanes)
                )
            return loaded[key]

        sums = list(sums)
        for index, a, b, lanes in block.fmas:
            left = operand(pointers[0], a, lanes, self.kernel.a_vector)
            right = operand(pointers[1], b, lanes, self.kernel.b_vector)
            if self.sum is INT32:
                product = self._value(f"mul {self.vector} {left}, {right}")
                sums[index] = self._value(f"add {self.vector} {sums[index]}, {product}")
                continue
            terms = f"{self.vector} {left}, {self.vector} {right}, {self.vector} {sums[index]}"
            call = f"call {self.vector} @llvm.fmuladd.{self._suffix(self.sum)}({terms})"
            sums[index] = self._value(call)
        return sums

    def _widened(self, value: str, lanes: int) -> str:
        """Return inputs in the type of the sums."""
        if self.input == self.sum:
            return value

        def of(kind: str) -> str:
            return f"<{lanes} x {kind}>" if lanes > 1 else kind

        if self.sum is INT32:
            return self._value(f"sext {of(self.input.type)} {value} to {of('i32')}")
        # A bfloat16 is the upper half of a float32.
        bits = self._value(f"zext {of('i16')} {value} to {of('i32')}")
        half = "16" if lanes == 1 else "<" + ", ".join(["i32 16"] * lanes) + ">"
        upper = self._value(f"shl {of('i32')} {bits}, {half}")
        return self._value(f"bitcast {of('i32')} {upper} to {of('float')}")

    def _mask(self, lanes: int) -> str:
        bits = ", ".join("i1 1" if lane < lanes else "i1 0" for lane in range(self.kernel.lanes))
        return f"<{self.kernel.lanes} x i1> <{bits}>"

    def _load(self, place: str, lanes: int, number: Number) -> str:
        """Load consecutive elements; the other lanes are zero."""
        vector, align = self._vector(number), number.bytes
        if lanes == self.kernel.lanes:
            return self._value(f"load {vector}, ptr {place}, align {align}")
        return self._value(
            f"call {vector} @llvm.masked.load.{self._suffix(number)}.p0(ptr {place}, i32 {align}, "
            f"{self._mask(lanes)}, {vector} zeroinitializer)"
        )

    def _broadcast(self, place: str, lanes: int) -> str:
        """Load one element into all lanes; in sums over lanes, into the active lanes only, zero elsewhere."""
        element = self._value(f"load {self.input.type}, ptr {place}, align {self.input.bytes}")
        element = self._widened(element, 1)
        width = self.kernel.lanes
        if width == 1:
            return element
        single = self._value(f"insertelement {self.vector} poison, {self.sum.type} {element}, i32 0")
        used = lanes if self.kernel.sum_lanes else width
        picks = ", ".join("i32 0" if lane < used else f"i32 {width}" for lane in range(width))
        return self._value(
            f"shufflevector {self.vector} {single}, {self.vector} zeroinitializer, <{width} x i32> <{picks}>"
        )

    def _store(self, value: str, place: str, lanes: int, number: Number) -> None:
        vector, align = self._vector(number), number.bytes
        if lanes == self.kernel.lanes:
            self._line(f"store {vector} {value}, ptr {place}, align {align}")
        else:
            self._line(
                f"call void @llvm.masked.store.{self._suffix(number)}.p0({vector} {value}, ptr {place}, "
                f"i32 {align}, {self._mask(lanes)})"
            )

    def _store_sum(self, value: str, place: str, add: bool) -> None:
        """Store the sum of the lanes; with `add`, add it to the element of C."""
        kind, align, suffix = self.sum.type, self.sum.bytes, self._suffix(self.sum)
        start = self._value(f"load {kind}, ptr {place}, align {align}") if add else self.sum.zero
        if self.sum is INT32:
            lanes = self._value(f"call i32 @llvm.vector.reduce.add.{suffix}({self.vector} {value})")
            total = self._value(f"add i32 {start}, {lanes}")
        else:
            terms = f"{kind} {start}, {self.vector} {value}"
            total = self._value(f"call reassoc {kind} @llvm.vector.reduce.fadd.{suffix}({terms})")
        self._line(f"store {kind} {total}, ptr {place}, align {align}")
