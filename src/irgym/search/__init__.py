"""Searches: strategies that look for a cheap schedule within a budget. One file a strategy.

A strategy is a frozen dataclass whose fields are its parameters and whose `run` proposes states to a
`Session`; adding one is a file and a line in `SEARCHES`, or an entry point in the group
`irgym.searches`. `irgym.search.session.run_search` runs one.
"""

from irgym.core.registry import Registry
from irgym.search.session import StrategyFactory

SEARCHES: Registry[StrategyFactory] = Registry(
    sort="search",
    group="irgym.searches",
    builtin={
        "random": "irgym.search.random:RandomSearch",
        "greedy": "irgym.search.greedy:Greedy",
        "greedy2": "irgym.search.greedy:greedy2",
        "beam": "irgym.search.beam:DepthFirstBeam",
        "beam-bfs": "irgym.search.beam:BreadthFirstBeam",
        "mcts": "irgym.search.mcts:MonteCarloTreeSearch",
        "evolutionary": "irgym.search.evolutionary:Evolutionary",
        "screened": "irgym.search.screened:Screened",
        "annealing": "irgym.search.annealing:Annealing",
        "guided": "irgym.search.guided:Guided",
        "rollout": "irgym.search.rollout:Rollout",
    },
)
