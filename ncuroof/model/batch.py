"""The critical batch: the size from which on an operation is compute-bound."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ncuroof.model.dtypes import dtype_of
from ncuroof.model.prediction import Prediction

MOST = 2**40
"""Largest size that is tried."""
_ROUNDING = 1e-9


def grows(predicted: Callable[[int], Prediction]) -> bool:
    """Return whether compute time over memory time never falls as a size doubles; otherwise there is no critical size.

    True if a roof is unknown.

    Args:
        predicted: returns the prediction for a size.
    """
    found = [predicted(1 << power).compute_over_memory for power in range(MOST.bit_length())]
    known = [each for each in found if each is not None]
    return all(after >= before * (1 - _ROUNDING) for before, after in itertools.pairwise(known))


def critical_size(predicted: Callable[[int], Prediction]) -> int | None:
    """Return the smallest size from which on the operation is compute-bound; None if it never is, or roofs are unknown.

    Args:
        predicted: returns the prediction for a size. Compute over memory time has to grow with the size (`grows`), as it does with
            the batch of a layer.
    """
    if not _is_compute_bound(predicted(MOST)):
        return None
    least = 0  # the largest size known not to be compute-bound
    size = 1
    while size < MOST and not _is_compute_bound(predicted(size)):
        least, size = size, 2 * size
    while size - least > 1:
        middle = (least + size) // 2
        if _is_compute_bound(predicted(middle)):
            size = middle
        else:
            least = middle
    return size


def critical_batch_of_large_layer(ridge_flop_per_byte: float, weight_dtype: str) -> float:
    """Return the batch, in tokens, above which a large linear layer is compute-bound: ridge · w / 2.

    flop/byte · byte/element ÷ 2 flop/(element·token) = tokens. Smaller layers need a larger batch: their activations move as well.

    Args:
        ridge_flop_per_byte: ridge of the machine in the precision of the product.
        weight_dtype: element type of the weights, of w bytes.

    Raises:
        UnknownNameError: no such element type.

    Source: Austin et al., How to Scale Your Model, part 1, 2025.
    """
    return ridge_flop_per_byte * dtype_of(weight_dtype).bytes / 2


def _is_compute_bound(prediction: Prediction) -> bool:
    return prediction.bound == "compute"
