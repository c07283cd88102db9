"""Observations of a state, for policies and Gymnasium."""

from irgym.core.observation import array_view, views_of
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.linalg.observing.features import FEATURES, OPERATIONS, features

_FEATURES = array_view(
    "features",
    "the current operation, its user and its producer, as scheduled so far",
    (OPERATIONS, FEATURES),
    features,
)

VIEWS = views_of(_FEATURES, TARGET_VIEW)
"""The observations, the default first."""
