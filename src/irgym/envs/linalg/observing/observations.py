"""What policies see of a schedule, and what Gymnasium shows."""

from irgym.core.observation import array_view, views_of
from irgym.core.target_observation import TARGET_VIEW
from irgym.envs.linalg.observing.features import FEATURES, OPERATIONS, features

_FEATURES = array_view(
    "features",
    "the operation at hand, its user and its producer, as they are now",
    (OPERATIONS, FEATURES),
    features,
)

VIEWS = views_of(_FEATURES, TARGET_VIEW)
"""The observations, the default first."""
