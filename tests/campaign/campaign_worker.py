"""Runs command lines one after the other in this process: `python campaign_worker.py REQUESTS ANSWERS`.

Each line of requests is a JSON object with `arguments` and `folder`, the working folder; each line of answers
has the exit code, and what went to stdout and stderr: also the traceback of whatever the command let out.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "toys"))

from irgym.cli.main import main
from irgym.core.catalogue import ENVIRONMENTS


def run(arguments: list[str]) -> tuple[int, str]:
    """Return the exit code of a command, and the traceback of what escaped from it."""
    try:
        main(arguments)
    except SystemExit as end:
        return (end.code if isinstance(end.code, int) else 0 if end.code is None else 1), ""
    except BaseException:  # noqa: BLE001 (what no command may let out is what the campaign looks for)
        return 1, traceback.format_exc()
    return 0, ""


def captured(arguments: list[str]) -> dict[str, Any]:
    """Return how a command ended and what it printed, its child processes included."""
    with TemporaryFile() as out, TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        code, escaped = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        texts: list[str] = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
    return {"code": code, "out": texts[0], "err": texts[1] + escaped}


def serve(requests: int, answers: int) -> None:
    """Answer requests until the other side closes its end."""
    ENVIRONMENTS.builtin["passes"] = "passes:PASSES"  # pyright: ignore
    ENVIRONMENTS.builtin["keeping"] = "keeping:KEEPING"  # pyright: ignore
    with os.fdopen(requests) as lines, os.fdopen(answers, "w") as replies:
        for line in lines:
            request = json.loads(line)
            os.chdir(request["folder"])
            print(json.dumps(captured(request["arguments"])), file=replies, flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
