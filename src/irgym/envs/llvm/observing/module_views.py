"""Views of modules alone: those that CompilerGym has, and IR2Vec's."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from irgym.core.observation import ObservationView, array_view, graph_space
from irgym.envs.llvm.observing.counts import (
    AUTOPHASE,
    INST_COUNT,
    Counts,
    autophase,
    inst_count,
    inst_count_norm,
)
from irgym.envs.llvm.observing.graphs import EDGE, EDGE_COLUMNS, NODE, NODE_COLUMNS, ProgramGraph
from irgym.envs.llvm.observing.ir2vec import ENTITY_NAMES, Vocabulary, entity_counts

TEXT_LENGTH = 1 << 20
"""Greatest length of a text; a longer one ends there."""

CHARSET = "".join(map(chr, range(32, 127))) + "\n\t"
"""Characters of LLVM's text, which escapes all others."""

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
"""Characters of bitcode in base 64."""

_LARGE = np.iinfo(np.int64).max
_LARGE_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Observed:
    """How a task is asked for what views are made of; each function has a task and a state as arguments.

    Attributes:
        counts: Returns the counts of the module.
        graph: Returns its program graph.
        text: Returns its text.
        bitcode: Returns its bitcode.
    """

    counts: Callable[[Any, Any], Counts]
    graph: Callable[[Any, Any], ProgramGraph]
    text: Callable[[Any, Any], str]
    bitcode: Callable[[Any, Any], bytes]


def module_views(of: Observed, vocabulary: Vocabulary | None) -> tuple[ObservationView, ...]:
    """Return the views of a module.

    Args:
        of: How a task is asked.
        vocabulary: Vectors of IR2Vec, see `Vocabulary.named`; None leaves the view `ir2vec` out.
    """
    embedding = [] if vocabulary is None else [_embedding(of, vocabulary)]
    return (*_count_views(of), *embedding, *_graph_views(of), *_text_views(of))


def _count_views(of: Observed) -> tuple[ObservationView, ...]:
    return (
        ObservationView(
            "inst-count",
            f"InstCount: totals and the number of each opcode; int64, [{len(INST_COUNT)}]",
            lambda: spaces.Box(0, _LARGE, (len(INST_COUNT),), np.int64),
            lambda task, state: inst_count(of.counts(task, state)),
        ),
        array_view(
            "inst-count-norm",
            "InstCount relative to the number of instructions",
            (len(INST_COUNT) - 1,),
            lambda task, state: inst_count_norm(of.counts(task, state)),
            0.0,
        ),
        ObservationView(
            "autophase",
            f"Autophase's features; int64, [{len(AUTOPHASE)}]",
            lambda: spaces.Box(0, _LARGE, (len(AUTOPHASE),), np.int64),
            lambda task, state: autophase(of.counts(task, state)),
        ),
        ObservationView(
            "ir2vec-counts",
            f"how often each entity of IR2Vec's vocabulary occurs; int32, [{len(ENTITY_NAMES)}]",
            lambda: spaces.Box(0, _LARGE_COUNT, (len(ENTITY_NAMES),), np.int32),
            lambda task, state: entity_counts(of.counts(task, state)),
        ),
    )


def _embedding(of: Observed, vocabulary: Vocabulary) -> ObservationView:
    return array_view(
        "ir2vec",
        "IR2Vec's symbolic embedding of the module",
        (vocabulary.size,),
        lambda task, state: vocabulary.embedding(of.counts(task, state)),
    )


def _graph_views(of: Observed) -> tuple[ObservationView, ...]:
    return (
        ObservationView(
            "graph",
            f"program graph for networks: kinds and types one-hot, [N, {NODE}]; control, data and calls "
            f"with positions, [E, {EDGE}]; float32",
            lambda: graph_space(NODE, EDGE, -2.0, np.inf),
            lambda task, state: of.graph(task, state).observation(),
            shown=lambda seen: seen.instance,
        ),
        ObservationView(
            "programl",
            f"program graph as numbers: {', '.join(NODE_COLUMNS)}, [N, {len(NODE_COLUMNS)}]; "
            f"{', '.join(EDGE_COLUMNS[2:])}, [E, 2]; float32",
            lambda: graph_space(len(NODE_COLUMNS), 2, -65.0, np.inf),
            lambda task, state: of.graph(task, state).exact(),
            shown=lambda seen: seen.instance,
        ),
    )


def _text_views(of: Observed) -> tuple[ObservationView, ...]:
    return (
        ObservationView(
            "text",
            f"the module as LLVM prints it; its first {TEXT_LENGTH:,} characters",
            lambda: spaces.Text(TEXT_LENGTH, min_length=0, charset=CHARSET),
            lambda task, state: of.text(task, state)[:TEXT_LENGTH],
        ),
        ObservationView(
            "bitcode",
            "the module as bitcode, in base 64",
            lambda: spaces.Text(16 * TEXT_LENGTH, min_length=0, charset=BASE64),
            lambda task, state: b64encode(of.bitcode(task, state)).decode(),
        ),
    )
