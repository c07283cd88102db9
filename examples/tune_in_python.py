"""Make one program fast from Python, and write it as C."""

from pathlib import Path

import tyro

import irgym


def main(program: str = "loops://mm/128x128x128", seconds: float = 5.0, out: Path = Path("kernel.c")) -> None:
    result = irgym.tune(program, seconds=seconds)
    print(f"{result.schedule}\n{result.program_after}")
    print(f"{result.speedup:.2f}x over the original program; {result.machine}")
    print(f"checked: {result.validation}")
    print("written:", *result.export(out))


if __name__ == "__main__":
    tyro.cli(main)
