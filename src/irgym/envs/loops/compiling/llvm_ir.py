"""LLVM IR of kernels, as text.

A kernel already has the shape of the final machine code, so the IR needs no optimisation.
"""

from collections.abc import Callable, Sequence

from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Repeat, Tile

Pointers = tuple[str, str, str]
"""Names of the values that point into A, B and C."""


def emit(kernel: Kernel, name: str, repetitions: bool) -> str:
    """Return the textual LLVM IR of a kernel.

    Args:
        kernel: What to emit.
        name: Name of the function.
        repetitions: Whether the function takes, after the pointers to A, B and C, an int64 with the number of
            runs, at least one, and a pointer to the workspace. Otherwise it runs once and each thread has a
            static workspace.
    """
    last = ", i64 %repetitions, ptr noalias %workspace" if repetitions else ""
    body = _Body(kernel)
    body.write("%repetitions" if repetitions else None)
    static = kernel.workspace and not repetitions
    return "\n".join(
        [
            *([_static_workspace(kernel)] if static else []),
            f"define void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c{last})"
            f' nounwind "prefer-vector-width"="{32 * kernel.lanes}" {{',
            "entry:",
            *(["  %workspace = call ptr @llvm.threadlocal.address.p0(ptr @workspace)"] if static else []),
            *body.lines,
            "  ret void",
            "}",
            *_declarations(kernel.lanes),
        ]
    )


def _static_workspace(kernel: Kernel) -> str:
    return (
        f"@workspace = internal thread_local global [{kernel.workspace} x float] zeroinitializer, align 64\n"
        "declare ptr @llvm.threadlocal.address.p0(ptr)"
    )


def _declarations(lanes: int) -> list[str]:
    memory = [
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    if lanes == 1:
        return [*memory, "declare float @llvm.fmuladd.f32(float, float, float)"]
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    return [
        *memory,
        f"declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})",
        f"declare {vector} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {mask}, {vector})",
        f"declare void @llvm.masked.store.v{lanes}f32.p0({vector}, ptr, i32, {mask})",
        f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {vector})",
    ]


class _Body:
    """The body of a function as it is being written.

    Attributes:
        lines: Instructions and labels so far.
        label: The current basic block; the phi nodes of its successors name it.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.vector = f"<{kernel.lanes} x float>" if kernel.lanes > 1 else "float"
        self.suffix = f"v{kernel.lanes}f32" if kernel.lanes > 1 else "f32"
        self.zero = "zeroinitializer" if kernel.lanes > 1 else "0.0"
        self.lines: list[str] = []
        self.label = "entry"
        self._names = 0

    def write(self, repetitions: str | None) -> None:
        """Write the kernel, in a loop if `repetitions` names the value that holds the number of runs."""
        if repetitions is None:
            self._once()
        else:
            self._loop(repetitions, [], [], lambda _: self._once())

    def _once(self) -> list[str]:
        if self.kernel.clear:
            size = 4 * self.kernel.clear
            self._line(f"call void @llvm.memset.p0.i64(ptr align 4 %c, i8 0, i64 {size}, i1 false)")
        return self._nodes(self.kernel.body, ("%a", "%b", "%c"), [])

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

    def _at(self, pointer: str, offset: int) -> str:
        """Return a pointer moved by a number of elements."""
        return self._value(f"getelementptr float, ptr {pointer}, i64 {offset}") if offset else pointer

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
        return sums

    def _pack(self, pack: Pack, pointers: Pointers) -> None:
        copy = self._at("%workspace", pack.place)
        self._nodes(pack.copy, (pointers[0], pointers[1], copy), [])
        a, b = (copy if place == pack.operand else pointers[place] for place in range(2))
        self._nodes(pack.body, (a, b, pointers[2]), [])

    def _copy(self, copy: Copy, pointers: Pointers) -> None:
        for offset in copy.prefetched:
            place = self._at(pointers[copy.operand], offset)
            self._line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")
        for source, destination, lanes, width in copy.moves:
            value = self._load(self._at(pointers[copy.operand], source), lanes)
            self._store(value, self._at(pointers[2], destination), width)

    def _repeat(self, repeat: Repeat, pointers: Pointers, sums: list[str]) -> list[str]:
        def iteration(values: list[str]) -> list[str]:
            a, b, c, *inside = values
            after = self._nodes(repeat.body, (a, b, c), inside)
            moved = [
                self._at(pointer, stride) for pointer, stride in zip((a, b, c), repeat.strides, strict=True)
            ]
            return [*moved, *after]

        types = [*["ptr"] * 3, *[self.vector] * len(sums)]
        return self._loop(repeat.count, types, [*pointers, *sums], iteration)[3:]

    def _tile(self, tile: Tile, pointers: Pointers) -> None:
        sums = self._nodes(tile.body, pointers, [self.zero] * len(tile.accumulators))
        for part, value in zip(tile.accumulators, sums, strict=True):
            place = self._at(pointers[2], part.c)
            if self.kernel.sum_lanes:
                self._store_sum(value, place, tile.add)
            elif tile.add:
                before = self._load(place, part.lanes)
                total = self._value(f"fadd {self.vector} {before}, {value}")
                self._store(total, place, part.lanes)
            else:
                self._store(value, place, part.lanes)

    def _block(self, block: Block, pointers: Pointers, sums: list[str]) -> list[str]:
        loaded: dict[tuple[str, int, int], str] = {}

        def operand(pointer: str, offset: int, lanes: int, vector: bool) -> str:
            key = pointer, offset, lanes
            if key not in loaded:
                place = self._at(pointer, offset)
                loaded[key] = self._load(place, lanes) if vector else self._broadcast(place, lanes)
            return loaded[key]

        sums = list(sums)
        for index, a, b, lanes in block.fmas:
            left = operand(pointers[0], a, lanes, self.kernel.a_vector)
            right = operand(pointers[1], b, lanes, self.kernel.b_vector)
            terms = f"{self.vector} {left}, {self.vector} {right}, {self.vector} {sums[index]}"
            sums[index] = self._value(f"call {self.vector} @llvm.fmuladd.{self.suffix}({terms})")
        return sums

    def _mask(self, lanes: int) -> str:
        bits = ", ".join("i1 1" if lane < lanes else "i1 0" for lane in range(self.kernel.lanes))
        return f"<{self.kernel.lanes} x i1> <{bits}>"

    def _load(self, place: str, lanes: int) -> str:
        """Load consecutive elements; the other lanes are zero."""
        if lanes == self.kernel.lanes:
            return self._value(f"load {self.vector}, ptr {place}, align 4")
        return self._value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 4, "
            f"{self._mask(lanes)}, {self.vector} zeroinitializer)"
        )

    def _broadcast(self, place: str, lanes: int) -> str:
        """Load one element into all lanes; in sums over lanes, into the active lanes only, zero elsewhere."""
        element = self._value(f"load float, ptr {place}, align 4")
        width = self.kernel.lanes
        if width == 1:
            return element
        single = self._value(f"insertelement {self.vector} poison, float {element}, i32 0")
        used = lanes if self.kernel.sum_lanes else width
        picks = ", ".join("i32 0" if lane < used else f"i32 {width}" for lane in range(width))
        return self._value(
            f"shufflevector {self.vector} {single}, {self.vector} zeroinitializer, <{width} x i32> <{picks}>"
        )

    def _store(self, value: str, place: str, lanes: int) -> None:
        if lanes == self.kernel.lanes:
            self._line(f"store {self.vector} {value}, ptr {place}, align 4")
        else:
            self._line(
                f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {place}, i32 4, "
                f"{self._mask(lanes)})"
            )

    def _store_sum(self, value: str, place: str, add: bool) -> None:
        """Store the sum of the lanes; with `add`, add it to the element of C."""
        start = self._value(f"load float, ptr {place}, align 4") if add else "0.0"
        total = self._value(
            f"call reassoc float @llvm.vector.reduce.fadd.{self.suffix}(float {start}, {self.vector} {value})"
        )
        self._line(f"store float {total}, ptr {place}, align 4")
