import sys
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1] / "toys"))
torch.set_num_threads(1)
