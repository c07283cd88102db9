"""Searches: strategies that look for a cheap schedule within a budget. One file a strategy.

A strategy is a frozen dataclass whose fields are its parameters and whose `run` proposes states to a
`Session`; adding one is a file and a line in `SEARCHES`, or an entry point in the group
`irgym.searches`. `irgym.search.run.run_search` runs one.
"""

from irgym.base.registry import Registry
from irgym.search.strategy import StrategyFactory

SEARCHES: Registry[StrategyFactory] = Registry(
    kind="search",
    group="irgym.searches",
    builtin={
        "random": "irgym.search.strategies.random:RandomSearch",
        "greedy": "irgym.search.strategies.greedy:Greedy",
        "greedy2": "irgym.search.strategies.greedy:greedy2",
        "beam": "irgym.search.strategies.beam:Beam",
        "beam-bfs": "irgym.search.strategies.beam:breadth_first",
        "taso": "irgym.search.strategies.backtracking:Backtracking",
        "exhaustive": "irgym.search.strategies.exhaustive:Exhaustive",
        "mcts": "irgym.search.strategies.mcts:MonteCarloTreeSearch",
        "evolutionary": "irgym.search.strategies.evolutionary:Evolutionary",
        "screened": "irgym.search.strategies.screened:Screened",
        "annealing": "irgym.search.strategies.annealing:Annealing",
        "guided": "irgym.search.strategies.guided:Guided",
        "rollout": "irgym.search.strategies.rollout:Rollout",
    },
    fault="irgym.search.strategy:factory_fault",
)
