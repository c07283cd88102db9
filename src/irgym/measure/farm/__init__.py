"""Farms: workers that run calls in parallel, on this machine or on others."""

from irgym.measure.farm.address import open_farm
from irgym.measure.farm.local import LocalFarm
from irgym.measure.farm.protocol import Farm

__all__ = ["Farm", "LocalFarm", "open_farm"]
