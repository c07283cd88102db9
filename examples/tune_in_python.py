"""Make one program fast from Python: search, check the result, measure it again, write it as C."""

from pathlib import Path

import tyro

from irgym.core.schedule import replay
from irgym.envs.loops.environment import LOOPS
from irgym.search.session import Budget, run_search
from irgym.search.strategies.evolutionary import Evolutionary


def main(uri: str = "loops://mm/128x128x128", seconds: float = 5.0, out: Path = Path("kernel.c")) -> None:
    task = LOOPS.task(uri)
    with LOOPS.bench() as bench:
        result = run_search(Evolutionary(), task, bench.evaluator, Budget(seconds=seconds), seed=0)
        state = replay(task, result.schedule)
        validation = bench.call(task.validation(state, inputs=3, seed=0))
        before, after = (bench.call(task.job(s).call).cost for s in (task.initial(), state))
        machine = bench.machine
    print(f"{result.schedule.text(task.space)}\n{task.describe(state)}")
    print(f"{before / after:.2f}x over the program as written, {result.evaluations} candidates; {machine}")
    print(f"checked on {validation.inputs} inputs: {'right' if validation.ok else 'WRONG'}")
    print("written:", *task.export(state, out))


if __name__ == "__main__":
    tyro.cli(main)
