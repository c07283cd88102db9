"""Program graphs of modules, after ProGraML.

Cummins et al., "ProGraML: A Graph-based Program Representation for Data Flow Analysis and Compiler
Optimizations", ICML 2021, has nodes for instructions, variables and constants, and edges of control, data
and calls with positions. Here a variable is one with the instruction that computes it, which holds its type:
that halves the nodes, and no information is lost, since each variable has one definition. Arguments, globals
and the distinct constants of each function are nodes; the values of a switch's cases are data that
flow to it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irgym.core.graph_observation import GraphObservation
from irgym.envs.llvm.compiling.library import Module
from irgym.envs.llvm.observing.opcodes import NEWER, NUMBERS

NODE_COLUMNS = ("kind", "type", "function", "block", "value")
"""Columns of the nodes of a graph."""

EDGE_COLUMNS = ("from", "to", "flow", "position")
"""Columns of the edges of a graph."""

FLOWS = ("control", "data", "call")
"""Kinds of edges, in ProGraML's order."""

OTHERS = ("root", "function", "global", "argument", "integer", "constant")
"""Kinds of nodes that are no instructions; the first has the number `FIRST_OTHER`, the next the next.

A function is a node if it is declared, or if its address is used; `integer` and `constant` are constants.
"""

FIRST_OTHER = 80

TYPES = (
    *("void", "i1", "i8", "i16", "i32", "i64", "integer", "float", "double", "floating", "pointer", "vector"),
    *("aggregate", "other"),
)
"""Kinds of types: of the result, of an argument, of a constant, or of what a global holds."""

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("branch", ("Br", "IndirectBr")),
    ("exception", ("Invoke", "Resume", "CleanupRet", "CatchRet", "CatchSwitch", "CleanupPad", "CatchPad")),
    ("exception", ("LandingPad", "CallBr")),
    ("divide", ("UDiv", "SDiv")),
    ("remainder", ("URem", "SRem")),
    ("float-add", ("FNeg", "FAdd", "FSub")),
    ("float-multiply", ("FMul", "FDiv", "FRem")),
    ("float-convert", ("FPTrunc", "FPExt", "FPToUI", "FPToSI", "UIToFP", "SIToFP")),
    ("pointer-convert", ("PtrToInt", "IntToPtr", "BitCast", "AddrSpaceCast")),
    ("atomic", ("Fence", "AtomicCmpXchg", "AtomicRMW")),
    ("vector-element", ("ExtractElement", "InsertElement", "ShuffleVector")),
    ("aggregate-element", ("ExtractValue", "InsertValue")),
    ("rare", ("UserOp1", "UserOp2", "VAArg", "Freeze")),
)


def _kinds() -> dict[str, str]:
    """Return the kind of each opcode that a network tells apart."""
    kinds = {name: name for name in NUMBERS}
    kinds |= {name: kind for kind, names in _GROUPS for name in names}
    return kinds | {name: kinds[older] for name, (_, older) in NEWER.items()}


KINDS = (*dict.fromkeys(_kinds().values()), *OTHERS)
"""Kinds of nodes that a network tells apart: opcodes, some of them together, and `OTHERS`."""

NODE = len(KINDS) + len(TYPES) + 3
"""Length of a node's features for networks: kind and type, one-hot; the length of an integer, signed, in 64
bits; the logarithms of the numbers of edges that enter and leave it, in quarters."""

EDGE = len(FLOWS) + 1
"""Length of an edge's features for networks: its flow, one-hot; its position's logarithm, in quarters."""


def _columns() -> NDArray[np.intp]:
    """Return the place in `KINDS` of each number of a node's kind."""
    numbers = NUMBERS | {name: number for name, (number, _) in NEWER.items()}
    places = np.full(FIRST_OTHER + len(OTHERS), KINDS.index("rare"), dtype=np.intp)
    for name, kind in _kinds().items():
        places[numbers[name]] = KINDS.index(kind)
    places[FIRST_OTHER:] = [KINDS.index(name) for name in OTHERS]
    return places


_COLUMNS = _columns()


@dataclass(frozen=True, eq=False)
class ProgramGraph:
    """A program graph.

    Attributes:
        nodes: Shape [N, 5], int32, by `NODE_COLUMNS`. The kind is an opcode by LLVM's number, or one of
            `OTHERS`. The type is a place in `TYPES`. Functions with a body and their blocks are numbered in
            order, and -1 is none. The value of an integer is its length in bits, signed; 65 for types beyond
            64 bits. That of a comparison is the place of its predicate in `counts.PREDICATES`, and one more.
            The first node is the root, the outside of the module.
        edges: Shape [E, 4], int32, by `EDGE_COLUMNS`. The flow is a place in `FLOWS`. The position is that of
            the operand or of the successor. Calls lead to the entry and come back from each return.
    """

    nodes: NDArray[np.int32]
    edges: NDArray[np.int32]

    @staticmethod
    def of(module: Module) -> "ProgramGraph":
        """Return the graph of a module."""
        return ProgramGraph.read(*module.graph())

    @staticmethod
    def read(nodes: bytes, edges: bytes) -> "ProgramGraph":
        """Return the graph of the bytes that `Module.graph` returns."""
        return ProgramGraph(
            np.frombuffer(nodes, dtype=np.int32).reshape(-1, len(NODE_COLUMNS)),
            np.frombuffer(edges, dtype=np.int32).reshape(-1, len(EDGE_COLUMNS)),
        )

    def observation(self, state: NDArray[np.float32] | None = None) -> GraphObservation:
        """Return the graph as networks see it: nodes [N, NODE], edges [E, EDGE].

        Args:
            state: What is known of the state as a whole, shape [S].
        """
        count, every = len(self.nodes), np.arange(len(self.nodes))
        nodes = np.zeros((count, NODE), dtype=np.float32)
        nodes[every, _COLUMNS[self.nodes[:, 0]]] = 1.0
        nodes[every, len(KINDS) + self.nodes[:, 1]] = 1.0
        nodes[:, -3] = np.where(self.nodes[:, 0] >= FIRST_OTHER, self.nodes[:, 4], 0) / 64.0
        for column, side in ((-2, 1), (-1, 0)):
            nodes[:, column] = np.log1p(np.bincount(self.edges[:, side], minlength=count)) / 4.0
        edges = np.zeros((len(self.edges), EDGE), dtype=np.float32)
        edges[np.arange(len(edges)), self.edges[:, 2]] = 1.0
        edges[:, -1] = np.log1p(self.edges[:, 3]) / 4.0
        whole = np.zeros(0, dtype=np.float32) if state is None else state
        return GraphObservation(nodes, edges, self.edges[:, :2].astype(np.int64), whole)

    def exact(self) -> GraphObservation:
        """Return the graph with its columns as features: nodes [N, 5]; flow and position of edges, [E, 2]."""
        return GraphObservation(
            self.nodes.astype(np.float32),
            self.edges[:, 2:].astype(np.float32),
            self.edges[:, :2].astype(np.int64),
        )
