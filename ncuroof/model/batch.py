"""From which size on an operation is bound by arithmetic: the critical batch."""

from __future__ import annotations

from collections.abc import Callable

from ncuroof.model.dtypes import dtype_of
from ncuroof.model.prediction import Prediction

MOST = 2**40
"""A size beyond which nobody looks."""


def critical_size(predicted: Callable[[int], Prediction], *, most: int = MOST) -> int | None:
    """Return the smallest size from which on the operation is compute-bound; None if it never is, or roofs are not known.

    Args:
        predicted: of a size. Compute over memory time has to grow with it, as it does with the batch of a layer.
        most: the largest size that is looked at.
    """
    if not _is_compute_bound(predicted(most)):
        return None
    least = 0  # the largest size known not to be compute-bound
    size = 1
    while size < most and not _is_compute_bound(predicted(size)):
        least, size = size, 2 * size
    while size - least > 1:
        middle = (least + size) // 2
        if _is_compute_bound(predicted(middle)):
            size = middle
        else:
            least = middle
    return size


def critical_batch_of_large_layer(ridge_flop_per_byte: float, weight_dtype: str) -> float:
    """Return the batch above which a linear layer of any great size is compute-bound: ridge · w / 2.

    flop/byte · byte/element ÷ 2 flop/(element·token) = tokens. Smaller layers need more: activations move as well.

    Source: Austin et al., How to Scale Your Model, part 1, 2025.
    """
    return ridge_flop_per_byte * dtype_of(weight_dtype).bytes / 2


def _is_compute_bound(prediction: Prediction) -> bool:
    return prediction.bound == "compute"
