from collections import Counter

import numpy as np
import pytest
from llvm_by_hand import functions, operands, targets
from llvm_modules import observed

from irgym.core.graph_observation import GraphObservation
from irgym.envs.llvm.observing.counts import PREDICATES
from irgym.envs.llvm.observing.graphs import (
    EDGE,
    FIRST_OTHER,
    KINDS,
    NODE,
    OTHERS,
    TYPES,
    ProgramGraph,
)
from irgym.envs.llvm.observing.opcodes import NEWER, NUMBERS

CONTROL, DATA, CALL = range(3)


def graph_of(llvm, content, passes="", which="first"):
    seen = llvm.submit(observed, content, passes).result()[which]
    return ProgramGraph.read(*seen.graph), seen.text


def name_of(kind):
    known = {number: name for name, number in NUMBERS.items()}
    known |= dict(NEWER.values())
    return OTHERS[kind - FIRST_OTHER] if kind >= FIRST_OTHER else known[kind]


def named_edges(graph, flow):
    """Edges as texts: each node is its kind, the place of its block or its value, and its function."""
    names = [
        f"{name_of(kind)}{block if block >= 0 else value}.{at}" for kind, _, at, block, value in graph.nodes
    ]
    return Counter(
        (names[a], names[b], position) for a, b, way, position in graph.edges.tolist() if way == flow
    )


def test_graph_of_a_small_module(llvm, small):
    graph, _ = graph_of(llvm, small)
    assert name_of(graph.nodes[0, 0]) == "root" and graph.nodes[1:, 0].min() > 0
    assert named_edges(graph, CONTROL) == Counter(
        [
            *(("ICmp0.0", "Br0.0", 0), ("Br0.0", "Switch1.0", 0), ("Br0.0", "PHI3.0", 1)),
            *(("Switch1.0", "PHI3.0", 0), ("Switch1.0", "Store2.0", 1), ("Switch1.0", "Store2.0", 2)),
            *(("Store2.0", "Br2.0", 0), ("Br2.0", "PHI3.0", 0), ("PHI3.0", "Call3.0", 0)),
            *(("Call3.0", "Ret3.0", 0), ("Call0.1", "Call0.1", 0), ("Call0.1", "Ret0.1", 0)),
            ("FCmp1.1", "Unreachable1.1", 0),
        ]
    )
    assert named_edges(graph, DATA) == Counter(
        [
            *(("argument0.0", "ICmp0.0", 0), ("integer2.0", "ICmp0.0", 1), ("ICmp0.0", "Br0.0", 0)),
            *(
                ("argument0.0", "Switch1.0", 0),
                ("integer1.0", "Switch1.0", 1),
                ("integer-2.0", "Switch1.0", 2),
            ),
            *(
                ("integer65.0", "Store2.0", 0),
                ("global0.-1", "constant0.0", 0),
                ("constant0.0", "Store2.0", 1),
            ),
            *(("integer0.0", "PHI3.0", 0), ("integer1.0", "PHI3.0", 1), ("integer2.0", "PHI3.0", 2)),
            *(("PHI3.0", "Call3.0", 0), ("Call3.0", "Ret3.0", 0)),
            *(("integer0.1", "Call0.1", 0), ("function0.-1", "Call0.1", 1)),
            *(("Call0.1", "Call0.1", 0), ("argument0.1", "Call0.1", 1), ("Call0.1", "Ret0.1", 0)),
            *(("constant0.1", "FCmp1.1", 0), ("constant0.1", "FCmp1.1", 1)),
        ]
    )
    assert named_edges(graph, CALL) == Counter(
        [
            # From outside to f, which is visible, and back; h is not.
            *(("root0.-1", "ICmp0.0", 0), ("Ret3.0", "root0.-1", 0)),
            # g is declared; h calls f, whose address it passes on.
            *(("Call3.0", "function0.-1", 0), ("function0.-1", "Call3.0", 0)),
            *(("Call0.1", "ICmp0.0", 0), ("Ret3.0", "Call0.1", 0), ("function0.-1", "ICmp0.0", 0)),
        ]
    )


@pytest.mark.parametrize("passes", ["instnamer", "mem2reg,instnamer", "default<O3>,instnamer"])
def test_graph_has_what_the_text_has(llvm, sources, passes):
    graph, text = graph_of(llvm, sources["signals"], passes)
    read, _ = functions(text)
    every = [instruction for function in read for _, instruction in function]
    control = sum(len(block.instructions) - 1 for function in read for block in function.blocks)
    control += sum(len(targets(instruction)) for instruction in every)
    assert (graph.edges[:, 2] == CONTROL).sum() == control
    instructions = graph.nodes[:, 0] < FIRST_OTHER
    assert instructions.sum() == len(every)
    entering = np.bincount(graph.edges[graph.edges[:, 2] == DATA, 1], minlength=len(graph.nodes))
    expected = []
    for instruction in every:
        taken = [kind for kind, _ in operands(instruction) if kind not in ("label", "metadata")]
        cases = len(targets(instruction)) - 1 if instruction.opcode == "switch" else 0
        expected.append(len(taken) + cases - (instruction.opcode == "call" and instruction.callee != ""))
    assert entering[instructions].tolist() == expected


@pytest.mark.parametrize("other", ["second", "clone", "reread"])
def test_equal_modules_have_equal_graphs(llvm, sources, other):
    seen = llvm.submit(observed, sources["sorting"], "default<O2>").result()
    assert seen[other].graph == seen["first"].graph


def test_a_module_without_functions_has_a_root(llvm):
    graph, _ = graph_of(llvm, b'target triple = "x86_64-unknown-linux-gnu"\n@x = global i32 3\n')
    assert graph.nodes.tolist() == [[FIRST_OTHER, TYPES.index("other"), -1, -1, 0]] and len(graph.edges) == 0
    assert graph.observation().nodes.shape == (1, NODE) and graph.observation().edges.shape == (0, EDGE)


def test_graph_of_rare_instructions(llvm, rare):
    graph, _ = graph_of(llvm, rare)
    assert graph.edges.min() >= 0 and graph.edges[:, :2].max() < len(graph.nodes)
    calls, data = named_edges(graph, CALL), named_edges(graph, DATA)
    callee = graph.nodes[:, 0].tolist().index(NUMBERS["Invoke"])
    assert calls["Invoke0.0", "function0.-1", 0] == calls["function0.-1", "Invoke0.0", 0] == 1
    assert {int(way) for way in graph.edges[graph.edges[:, 0] == callee, 2]} == {CONTROL, CALL}
    # An alias, and a table of blocks, are globals; so is what atomics change.
    assert data["global0.-1", "AtomicRMW2.1", 0] == data["global0.-1", "GetElementPtr0.1", 0] == 1
    assert (graph.observation().nodes[:, : len(KINDS)].sum(axis=1) == 1).all()


def test_networks_see_kinds_types_and_flows(llvm, small):
    graph, _ = graph_of(llvm, small)
    seen = graph.observation(np.arange(3, dtype=np.float32))
    assert isinstance(seen, GraphObservation) and seen.state.tolist() == [0, 1, 2]
    assert seen.nodes.dtype == seen.edges.dtype == np.float32 and seen.links.dtype == np.int64
    assert (seen.nodes[:, : len(KINDS)].sum(axis=1) == 1).all()
    assert (seen.nodes[:, len(KINDS) : len(KINDS) + len(TYPES)].sum(axis=1) == 1).all()
    assert (seen.edges[:, :3].argmax(axis=1) == graph.edges[:, 2]).all()
    np.testing.assert_array_equal(seen.links, graph.edges[:, :2])
    kinds = Counter(KINDS[place] for place in seen.nodes[:, : len(KINDS)].argmax(axis=1))
    assert kinds["branch"] == 2 and kinds["Call"] == 3 and kinds["function"] == 2 and kinds["root"] == 1
    # The predicates eq, the first of integers, and oeq, the second of floating-point numbers; never a size.
    compares = {name_of(kind): value for kind, _, _, _, value in graph.nodes.tolist() if kind in (42, 43)}
    assert compares == {"ICmp": 1 + PREDICATES.index("ICMP_eq"), "FCmp": 1 + PREDICATES.index("FCMP_oeq")}
    assert not seen.nodes[np.isin(graph.nodes[:, 0], [42, 43]), -3].any()
    phi = graph.nodes[:, 0].tolist().index(NUMBERS["PHI"])
    assert TYPES[seen.nodes[phi, len(KINDS) : len(KINDS) + len(TYPES)].argmax()] == "i32"
    exact = graph.exact()
    np.testing.assert_array_equal(exact.nodes, graph.nodes)
    np.testing.assert_array_equal(exact.edges, graph.edges[:, 2:])
