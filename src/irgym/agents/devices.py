"""Devices of learners: their names, and the copies of networks that act on the CPU.

Networks learn on the device and act on the CPU: episodes need scores for a few states at a time, for which
small networks are faster there, and everything beside learning then deals with tensors of the CPU alone.
"""

import re
from copy import deepcopy
from typing import TypeVar

import torch
from torch import nn

from irgym.agents.hyperparameters import DeviceOptions
from irgym.base.errors import IrgymError

M = TypeVar("M", bound=nn.Module)

_NAME = re.compile(r"auto|cpu|cuda(:\d{1,3})?")


def device_named(name: str) -> torch.device:
    """Return the device of a name: cpu, cuda, cuda:N, or auto for CUDA where torch sees it, else the CPU.

    Raises:
        IrgymError: There is no such name, or no such device here.
    """
    if not _NAME.fullmatch(name):
        raise IrgymError(f"there is no device {name!r}: choose auto, cpu, cuda, or cuda:N for GPU number N")
    there = name != "cpu" and torch.cuda.is_available()
    if name == "cpu" or (name == "auto" and not there):
        return torch.device("cpu")
    if not there:
        raise IrgymError(
            f"torch sees no GPU for device {name}: choose auto or cpu, or install a torch with CUDA and the "
            "GPU's driver"
        )
    number = int(name.partition(":")[2] or torch.cuda.current_device())
    count = torch.cuda.device_count()
    if number >= count:
        raise IrgymError(f"there is no device {name}: choose a number below {count}, as many GPUs torch sees")
    return torch.device("cuda", number)


def learning_text(config: object) -> str:
    """Return where an agent learns, as in `learning on cuda:0 (NVIDIA H200)`; empty if it has no such option.

    Raises:
        IrgymError: Its configuration names no device that is here.
    """
    if not isinstance(config, DeviceOptions):
        return ""
    device = device_named(config.device)
    kind = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    return f"learning on {device}{kind}"


def acting_copy(network: M, device: torch.device) -> M:
    """Return the copy of a network that acts on the CPU while it learns on a device.

    On the CPU this is the network itself.
    """
    return network if device.type == "cpu" else deepcopy(network)


def refresh(acting: nn.Module, network: nn.Module) -> None:
    """Copy weights and statistics of a network to the one that acts, if that is another."""
    if acting is not network:
        acting.load_state_dict(network.state_dict())
