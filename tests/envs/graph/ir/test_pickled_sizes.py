"""Open sizes that come from another process, where texts have other hashes."""

import os
import pickle
import subprocess
import sys

from irgym.envs.graph.ir.sizes import Open, symbol

MAKE = """
import pickle, sys
from irgym.envs.graph.ir.sizes import symbol
sys.stdout.buffer.write(pickle.dumps((symbol("height") + 1) // 2 * symbol("width")))
"""


def test_a_size_from_another_process_is_equal_and_found() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    made = subprocess.run([sys.executable, "-c", MAKE], env=environment, check=True, capture_output=True)
    theirs = pickle.loads(made.stdout)
    ours = (symbol("height") + 1) // 2 * symbol("width")
    assert isinstance(ours, Open)
    assert theirs == ours
    assert hash(theirs) == hash(ours)
    assert not theirs - ours
    assert theirs + ours == 2 * ours
