import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
sys.path.append(str(Path(__file__).parents[1] / "toys"))
