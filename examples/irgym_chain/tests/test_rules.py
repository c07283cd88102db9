"""The environment and the agent keep the rules of irgym, and a key that forgets too much is found."""

import pytest

import irgym
from irgym_chain.environment import CHAIN
from irgym_chain.reinforce import ReinforceConfig
from irgym_chain.task import ChainTask, Joins

FOUND = (
    "chain://30x35x15x5x10 breaks the rule 'equal-costs', after 'join_2 join_1' and after 'join_1 join_2': "
    "equal keys come with the costs 9375.0 and 21000.0"
)


class Unordered(ChainTask):
    """A chain whose key forgets the order of the joins, so that different programs have equal keys."""

    def key(self, state: Joins) -> str:
        return " ".join(map(str, sorted(state)))


def test_the_environment_keeps_the_rules():
    irgym.check_environment(CHAIN, ["chain://30x35x15x5x10", "chain://7x1x9"], walks=40)


def test_the_agent_keeps_the_rules():
    irgym.check_agent(ReinforceConfig(episodes=16, hidden=(16,), normalise_observations=True), CHAIN)


def test_a_key_of_two_programs_is_found():
    with CHAIN.bench() as bench, pytest.raises(irgym.IrgymError) as caught:
        irgym.check_task(Unordered((30, 35, 15, 5, 10)), bench=bench, walks=40)
    assert str(caught.value) == FOUND
