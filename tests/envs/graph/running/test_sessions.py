"""Timed sessions: spinning of their threads."""

from statistics import median

import numpy as np
import pytest

from irgym.envs.graph.checking.checks import feeds_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.running.artefacts import model_at
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
    task = GRAPH.task("graph://squeezenet1_1?size=128", "ort:2")
    weights, feeds = model_at(task.path).weights, feeds_of(task.path, 0)
    first, second = (Program(task.graph, weights, 2, "all").bound(feeds) for _ in range(2))
    alone = median(sample(first.run, timing_of(2)))
    turns = np.array(interleave(first.run, second.run, timing=timing_of(2)))
    assert np.median(turns[:, 0]) < 1.5 * alone
    assert 0.8 < np.median(turns[:, 1] / turns[:, 0]) < 1.25
