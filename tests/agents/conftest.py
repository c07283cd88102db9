import torch

from irgym.loggers.events import without_tensorflow

torch.set_num_threads(1)
# Stable-Baselines3 imports TensorBoard; TensorFlow's LLVM and torch-mlir's abort in one process.
without_tensorflow()
