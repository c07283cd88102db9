"""The log-probability and the entropy of actions, differentiable; see `irgym.policies.heads`."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from irgym.policies.heads import MASKED
from irgym.policies.layout import ActionLayout


class Evaluated(NamedTuple):
    """Differentiable properties of given actions.

    Attributes:
        log_prob: Shape [B].
        entropy: Shape [B]; of the whole distribution: H(kind) + sum over kinds of p(kind) H(its slots).
    """

    log_prob: Tensor
    entropy: Tensor


def evaluate(
    scores: Tensor, legal: Tensor, choices: Tensor, layout: ActionLayout, pair_scores: Tensor | None = None
) -> Evaluated:
    """Return the log-probability of `choices` and the entropy.

    Args:
        scores: Shape [B, S, W + K], where K is the greatest number of candidates, if there are any.
        legal: Of the same shape, boolean, or wider: part of a batch may have fewer candidates.
        choices: Shape [B, S], int64.
        layout: The meaning of the segments.
        pair_scores: Shape [P, W, W], see `Actor`. The entropy of a linked slot is then that under `choices`.
    """
    device = scores.device
    if pair_scores is not None:
        earlier, later = (torch.as_tensor(part, device=device) for part in (layout.earlier, layout.later))
        added = pair_scores[torch.arange(len(earlier), device=device), choices[:, earlier]]
        if layout.pointed:
            added = functional.pad(added, (0, scores.shape[-1] - layout.width))
        scores = scores.index_add(1, later, added)
    if layout.pointed:
        legal = legal[..., : scores.shape[-1]]
    log_p = torch.where(legal, scores, MASKED).log_softmax(-1)
    chosen = log_p.gather(-1, choices.unsqueeze(-1)).squeeze(-1)
    probabilities = log_p.exp()
    entropies = -(probabilities * log_p).sum(-1)
    if layout.segments == 1:
        return Evaluated(chosen[:, 0], entropies[:, 0])
    first = choices[:, 0].clamp(max=layout.width) if layout.pointed else choices[:, 0]
    active = torch.as_tensor(layout.active, device=device)[first]
    owners = probabilities[:, 0, torch.as_tensor(layout.owner, device=device)]
    return Evaluated((chosen * active).sum(-1), entropies[:, 0] + (owners * entropies[:, 1:]).sum(-1))
