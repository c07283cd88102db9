"""Timed sessions: spinning of their threads."""

from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from small_graphs import graph_of

from irgym.envs.graph.ir.node import node
from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.running.sessions import Program, options_of, timed_options
from irgym.envs.graph.running.timing import timing_of
from irgym.measure.machine import core_count
from irgym.measure.timing import interleave, sample

STOPS = "session.force_spinning_stop"


def test_only_timed_sessions_differ_from_what_users_get():
    assert timed_options("all", 2).get_session_config_entry(STOPS) == "1"
    with pytest.raises(RuntimeError, match=STOPS):
        options_of("all", 2).get_session_config_entry(STOPS)


@pytest.mark.timed
def test_threads_of_one_session_leave_those_of_another_alone():
    """Spinning threads made two sessions in turn take twice as long as each alone."""
    if core_count() < 2:
        pytest.skip("needs two cores")
    values = [f"v{place}" for place in range(9)]
    nodes = [node("MatMul", [before, "w"], [after]) for before, after in pairwise(values)]
    weights = {"w": np.eye(384, dtype=np.float32)}
    graph = graph_of(nodes, {values[0]: (384, 384)}, weights, values[-1:])
    feeds = {values[0]: np.ones((384, 384), np.float32)}
    first, second = (Program(graph, Weights({}), 2, "all").bound(feeds) for _ in range(2))
    alone = median(sample(first.run, timing_of(2)))
    turns = np.array(interleave(first.run, second.run, timing=timing_of(2)))
    assert np.median(turns[:, 0]) < 1.5 * alone
    assert 0.8 < np.median(turns[:, 1] / turns[:, 0]) < 1.25
