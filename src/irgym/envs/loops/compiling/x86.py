"""Code shared by the x86-64 generators: function, loops, pointers and registers of a kernel.

The function is `void f(const float *a, const float *b, float *c, int64_t repetitions, float *workspace)`, or
the same with `double`, in the System V ABI: the arguments are in rdi, rsi, rdx, rcx and r8. It runs the whole
kernel `repetitions` >= 1 times. Its code is position-independent and should be aligned to 64 bytes.
"""

from collections.abc import Sequence

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling.block import InstructionSet, Operand, emit_group, groups
from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Prefetch, Repeat, Tile

POINTERS = (asm.RDI, asm.RSI, asm.RDX)

COUNTERS = (
    asm.RAX,
    asm.R8,
    asm.R9,
    asm.R10,
    asm.RBX,
    asm.RBP,
    asm.R12,
    asm.R13,
    asm.R14,
)
"""Loop counters, the innermost loop's first; the outermost loops of deeper nests count on the stack."""

CALLEE_SAVED = frozenset((asm.RBX, asm.RBP, asm.R12, asm.R13, asm.R14, asm.R15))

WORKSPACE = asm.R15
"""General-purpose register with the address of the workspace, in kernels that have one."""

SCRATCH = asm.R11
"""General-purpose register for the setup of instruction sets."""

LOOP_ALIGNMENT = 64
"""Alignment of hot loops, in bytes."""


def emit(kernel: Kernel, instructions: InstructionSet) -> bytes:
    """Return the machine code of `kernel`."""
    depth = _depth(kernel.body)
    saved = [register for register in COUNTERS[:depth] if register in CALLEE_SAVED]
    body = _Emitter(kernel, instructions, depth).run()
    start = b""
    if kernel.workspace:
        saved.append(WORKSPACE)
        start = asm.move(WORKSPACE, asm.R8)
    start = b"".join(map(asm.push, saved)) + start + instructions.setup()
    start += asm.nops(-len(start) % 64)
    repeat = asm.decrement(asm.RCX)
    repeat += asm.jump_if_not_zero(-len(body) - len(repeat))
    end = instructions.teardown() + b"".join(map(asm.pop, reversed(saved))) + asm.vzeroupper() + asm.ret()
    return b"".join((start, body, repeat, end))


def _depth(nodes: Sequence[Node]) -> int:
    """Return the greatest depth of nested `Repeat`."""

    def of(node: Node) -> int:
        match node:
            case Block() | Copy() | Prefetch():
                return 0
            case Pack():
                return max(_depth(node.copy), _depth(node.body))
            case Tile():
                return _depth(node.body)
            case Repeat():
                return _depth(node.body) + 1

    return max(map(of, nodes), default=0)


class _Emitter:
    """Emitter of the body of a function.

    Moves of pointers are deferred to the head or the end of a loop: `pending` holds the bytes by which each
    lags behind, and displacements compensate for them.
    """

    def __init__(self, kernel: Kernel, instructions: InstructionSet, depth: int) -> None:
        self.kernel = kernel
        self.instructions = instructions
        self.depth = depth
        self.code = bytearray()
        self.bytes = kernel.elements.bytes
        self.pending = [0, 0, 0]
        self.accumulators = 0

    def run(self) -> bytes:
        if self.kernel.clear:
            self._clear(self.kernel.clear)
        self._nodes(self.kernel.body, 0)
        self._catch_up()
        return bytes(self.code)

    def _clear(self, count: int) -> None:
        words = count * self.bytes // 4
        self.code += asm.move(asm.R8, asm.RDI) + asm.move(asm.R9, asm.RCX)
        self.code += asm.move(asm.RDI, asm.RDX) + asm.clear_eax() + asm.move_immediate(asm.RCX, words)
        self.code += asm.fill_with_eax() + asm.move(asm.RDI, asm.R8) + asm.move(asm.RCX, asm.R9)

    def _nodes(self, nodes: Sequence[Node], depth: int) -> None:
        for node in nodes:
            match node:
                case Block():
                    self._block(node)
                case Tile():
                    self._tile(node, depth)
                case Repeat():
                    self._repeat(node, depth)
                case Pack():
                    self._pack(node, depth)
                case Copy():
                    self._copy(node)
                case Prefetch():
                    self._prefetch(node)

    def _catch_up(self) -> None:
        for place, register in enumerate(POINTERS):
            if self.pending[place]:
                self.code += asm.add_immediate(register, self.pending[place])
                self.pending[place] = 0

    def _repeat(self, node: Repeat, depth: int) -> None:
        self._catch_up()
        level = self.depth - depth - 1
        counter = COUNTERS[level] if level < len(COUNTERS) else None
        if counter is None:
            self.code += asm.push_immediate(node.count)
        else:
            self.code += asm.move_immediate(counter, node.count)
        if isinstance(node.body[0], Block | Copy | Prefetch):
            self.code += asm.nops(-len(self.code) % LOOP_ALIGNMENT)
        head = len(self.code)
        self._nodes(node.body, depth + 1)
        for place, stride in enumerate(node.strides):
            self.pending[place] += self.bytes * stride
        self._catch_up()
        self.code += asm.decrement_stack_top() if counter is None else asm.decrement(counter)
        self.code += asm.jump_if_not_zero(head - len(self.code))
        if counter is None:
            self.code += asm.add_immediate(asm.RSP, 8)
        for place, stride in enumerate(node.strides):
            self.pending[place] = -self.bytes * stride * node.count

    def _tile(self, node: Tile, depth: int) -> None:
        instructions, sum_lanes = self.instructions, self.kernel.sum_lanes
        self.accumulators = len(node.accumulators)
        pointer = POINTERS[2]
        for register in range(self.accumulators):
            self.code += instructions.zero(register)
        self._nodes(node.body, depth)
        scratch = self.accumulators
        for register, (offset, lanes) in enumerate(node.accumulators):
            displacement = self.bytes * offset + self.pending[2]
            if sum_lanes:
                self.code += instructions.store_sum(register, pointer, displacement, node.add, scratch)
            else:
                if node.add:
                    self.code += instructions.add(register, pointer, displacement, lanes, scratch)
                self.code += instructions.store(register, pointer, displacement, lanes, scratch)

    def _prefetch(self, node: Prefetch) -> None:
        pointer, lag = POINTERS[node.operand], self.pending[node.operand]
        for offset in node.offsets:
            self.code += asm.prefetch(pointer, self.bytes * offset + lag, to_write=node.operand == 2)

    def _block(self, node: Block) -> None:
        kernel, pending = self.kernel, self.pending
        a = Operand(POINTERS[0], pending[0], kernel.a_vector, self.bytes)
        b = Operand(POINTERS[1], pending[1], kernel.b_vector, self.bytes)
        for fmas in groups(node.fmas):
            self.code += emit_group(fmas, a, b, self.accumulators, self.instructions)

    def _pack(self, node: Pack, depth: int) -> None:
        """Copy with pointer C turned to the workspace, then run the body with the input's turned to it."""
        self._catch_up()
        source, place = POINTERS[node.operand], self.bytes * node.place
        c = POINTERS[2]
        self.code += asm.push(source) + asm.push(c) + asm.load_address(c, WORKSPACE, place)
        self._nodes(node.copy, depth)
        self.code += asm.pop(c) + asm.load_address(source, WORKSPACE, place)
        self.pending = [0, 0, 0]
        self._nodes(node.body, depth)
        self.pending[node.operand] = 0
        self.code += asm.pop(source)

    def _copy(self, node: Copy) -> None:
        source, destination = POINTERS[node.operand], POINTERS[2]
        lag, ahead = self.pending[node.operand], self.pending[2]
        for place, (start, end, lanes, width) in enumerate(node.moves):
            register = place % self.instructions.registers // 2
            self.code += (
                self.instructions.load(register, source, self.bytes * start + lag, lanes)
                if lanes
                else self.instructions.zero(register)
            )
            self.code += self.instructions.store(
                register, destination, self.bytes * end + ahead, width, self.instructions.registers - 1
            )
