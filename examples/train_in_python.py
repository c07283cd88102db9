"""Train a policy from Python, and evaluate it on programs that it has not seen."""

from pathlib import Path

import tyro

import irgym


def main(run: Path = Path("runs/mine"), dataset: str = "mm64_128_16_range", seconds: float = 120.0) -> None:
    training = irgym.Training(agent="ppo", dataset=dataset, hyperparameters={"episodes": 64})
    irgym.train("loops", run, seconds=seconds, training=training)
    comparison = irgym.evaluate(run, evaluating=irgym.Evaluating(limit=10))
    for row in comparison.rows:
        print(f"{row.program}: {row.speedup:.2f}x by: {row.schedule}" if row.speedup else row.detail)
    print(f"geometric mean: {comparison.summary[0].speedup}")


if __name__ == "__main__":
    tyro.cli(main)
