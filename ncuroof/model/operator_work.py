"""Work of PyTorch's operators that depends on several shapes (products, convolutions, attention), and shapes of results.

FLOPs of the other operators, and operators that do not move every tensor once, are in `profiles/operators.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ncuroof.model.attention_products import attention_work, pairs
from ncuroof.model.dtypes import dtype_of, wider
from ncuroof.model.operation import TensorShape, Work, vector
from ncuroof.model.per_element import adamw
from ncuroof.resources import profile_file


class Uncountable(Exception):  # noqa: N818  no error: caught in operators.py
    """The work of an operator cannot be derived from what is known about the call."""


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call of an operator.

    Attributes:
        name: plain name (see `plain_name` in operators.py).
        arguments: in the order of the signature; None for arguments that are not tensors.
        outputs: tensors written.
        is_causal: attention with a causal mask.
        is_transposed: a transposed convolution.
        is_of_lists: a `_foreach_` form, which treats each tensor of its lists separately.
    """

    name: str
    arguments: tuple[TensorShape | None, ...]
    outputs: tuple[TensorShape, ...]
    is_causal: bool = False
    is_transposed: bool = False
    is_of_lists: bool = False

    @property
    def tensors(self) -> tuple[TensorShape, ...]:
        """Arguments that are tensors."""
        return tuple(each for each in self.arguments if each is not None)


_PLACE_BY_PRODUCT: Mapping[str, int] = {
    "mm": 0, "bmm": 0, "matmul": 0, "mv": 0, "dot": 0, "vdot": 0, "_scaled_mm": 0, "_int_mm": 0,
    "addmm": 1, "baddbmm": 1, "addmv": 1, "_addmm_activation": 1,
}  # fmt: skip
"""Position of the first of the two matrices among the tensors; a tensor before them is added to the product."""

_CONVOLUTIONS = (
    "convolution", "_convolution", "conv1d", "conv2d", "conv3d", "cudnn_convolution", "mkldnn_convolution",
    "convolution_overrideable", "_slow_conv2d_forward", "thnn_conv2d", "_conv_depthwise2d",
)  # fmt: skip
_ATTENTION = (
    "scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
)  # fmt: skip


def _product(call: OperatorCall, place: int) -> tuple[Work, ...]:
    """Return 2 FLOP per term, with a term per column of the first matrix for each element of the result, and 1 to add a tensor."""
    left, right = call.tensors[place], call.tensors[place + 1]
    result = _product_sizes(left.sizes, right.sizes)
    n = math.prod(result)
    product = _matrix(2 * n * left.sizes[-1], left, right)
    return (product, _added(n, left)) if place else (product,)


def _linear(call: OperatorCall) -> tuple[Work, ...]:
    x, weights, *bias = call.tensors
    n = math.prod(x.sizes[:-1]) * weights.sizes[0]
    product = _matrix(2 * n * x.sizes[-1], x, weights)
    return (product, _added(n, x)) if bias else (product,)


def _convolution(call: OperatorCall) -> tuple[Work, ...]:
    """Return 2 FLOP per output element and weight of its filter; if transposed, per input element and weight.

    A filter has as many weights as the product of all weight sizes except the first: channels of a group times window.
    """
    x, weights, *bias = call.tensors
    n = x.n_elements if call.is_transposed else call.outputs[0].n_elements
    product = _matrix(2 * n * math.prod(weights.sizes[1:]), x, weights)
    return (product, _added(call.outputs[0].n_elements, x)) if bias else (product,)


def _convolution_backward(call: OperatorCall) -> tuple[Work, ...]:
    """Return the FLOPs of the forward product per gradient of input and weights, and additions for the bias's gradient."""
    gradient, x, weights = call.tensors[:3]
    n = x.n_elements if call.is_transposed else gradient.n_elements
    flop = 2 * n * math.prod(weights.sizes[1:])
    n_products = sum(len(each.sizes) > 1 for each in call.outputs)
    has_bias = any(len(each.sizes) == 1 for each in call.outputs)
    return (_matrix(n_products * flop, gradient, weights), _added(gradient.n_elements if has_bias else 0, x))


def _attention(call: OperatorCall, *, is_backward: bool) -> tuple[Work, ...]:
    """Return the work of a flash kernel, as in its model. Tensors are batch × heads × sequence × features.

    A causal mask is aligned at the starts of queries and keys, as `scaled_dot_product_attention` documents for `is_causal`.
    """
    query, key, value = call.tensors[is_backward : 3 + is_backward]
    batch, heads, seq, dim = query.sizes
    _, key_heads, keys, _ = key.sizes
    if not key_heads or heads % key_heads:
        raise Uncountable
    rows, dtype = batch * heads * seq, dtype_of(query.dtype)
    if not dtype.matrix:
        raise Uncountable
    scores = batch * heads * pairs(seq, keys, is_causal=call.is_causal, is_at_end=False)
    work = attention_work(scores, dim, value.sizes[3], dtype, recomputed_rows=rows, backward=is_backward)
    return tuple(work)


def _adam(call: OperatorCall) -> tuple[Work, ...]:
    """Return the work per parameter, as in the model. The step takes lists of parameters, gradients, moments and 0-d counters."""
    n_parameters = sum(each.sizes == () for each in call.tensors)
    parameters = call.tensors[:n_parameters]
    if not parameters:
        raise Uncountable
    n = sum(each.n_elements for each in parameters)
    return adamw(n, dtype=parameters[0].dtype).work


def _matrix(flop: float, left: TensorShape, right: TensorShape) -> Work:
    dtype = wider(dtype_of(left.dtype), dtype_of(right.dtype))
    if not dtype.matrix:
        raise Uncountable
    return Work(flop, dtype.matrix, is_product=True)


def _added(n: int, tensor: TensorShape) -> Work:
    return vector(n, dtype_of(tensor.dtype))


_ATTENTION_BACKWARD = frozenset(f"{name}_backward" for name in _ATTENTION)

_LIKE_BROADCAST = frozenset({"copy", "clone", "contiguous", "_to_copy", "where", "masked_fill"})
_LIKE_FIRST = frozenset(
    {
        "_softmax", "_safe_softmax", "_log_softmax", "softmax", "log_softmax", "native_layer_norm", "layer_norm", "batch_norm",
        "native_batch_norm", "cudnn_batch_norm", "native_group_norm", "rms_norm", "_fused_rms_norm", "_softmax_backward_data",
        "_log_softmax_backward_data", "cumsum",
    }
)  # fmt: skip
_NORM_BACKWARD = frozenset({"native_layer_norm_backward"})
_RESULTS: Mapping[str, Callable[[Sequence[TensorShape]], tuple[int, ...]]] = {
    "linear": lambda tensors: (*tensors[0].sizes[:-1], tensors[1].sizes[0]),
    "embedding": lambda tensors: (*tensors[1].sizes, tensors[0].sizes[-1]),
    **dict.fromkeys(_ATTENTION, lambda tensors: (*tensors[0].sizes[:-1], tensors[min(2, len(tensors) - 1)].sizes[-1])),
}


def _product_sizes(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a product of vectors, matrices, or batches of these."""
    if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
        raise Uncountable
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    return (*_broadcast([left[:-2], right[:-2]]), *rows, *columns)


FAMILIES: Mapping[str, Callable[[OperatorCall], tuple[Work, ...]]] = {
    **{name: partial(_product, place=place) for name, place in _PLACE_BY_PRODUCT.items()},
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **{name: partial(_attention, is_backward=False) for name in _ATTENTION},
    **dict.fromkeys(_ATTENTION_BACKWARD, partial(_attention, is_backward=True)),
    "linear": _linear,
    "convolution_backward": _convolution_backward,
    "_fused_adam": _adam,
    "_fused_adamw": _adam,
}
"""Functions that return the work of a call, by plain name of the operator."""


def results_of(name: str, arguments: Sequence[TensorShape | None], table: OperatorTable) -> list[TensorShape] | None:
    """Return the results of an operator if their shapes follow from its inputs, else None.

    Results of elementwise operators have the shape that the inputs broadcast to; those of normalisations and softmax have the shape
    of the first input. The result of a sum or a gather does not follow from the shapes of its inputs.

    Raises:
        Uncountable: the shapes do not fit a matrix product.
    """
    tensors = [each for each in arguments if each is not None]
    if not tensors:
        return None
    first, place = tensors[0], _PLACE_BY_PRODUCT.get(name)
    sizes: tuple[int, ...] | None = None
    if name in _ATTENTION_BACKWARD:
        return tensors[1:4]
    if name in _NORM_BACKWARD:  # takes dy, x, mean, 1/σ, weights, biases; returns dx, dweights, dbiases
        return [tensors[1], *tensors[4:]]
    if place is not None and len(tensors) >= place + 2:
        sizes = _product_sizes(tensors[place].sizes, tensors[place + 1].sizes)
    elif name in _LIKE_BROADCAST or name in table.pointwise:
        sizes = _broadcast([each.sizes for each in tensors])
    elif name in table.reduction and name in _LIKE_FIRST:
        sizes = first.sizes
    elif name in _RESULTS and len(tensors) > 1:
        sizes = _RESULTS[name](tensors)
    return None if sizes is None else [TensorShape(sizes, first.dtype)]


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    longest = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """Operators whose work and traffic are given by a table instead of code, by plain name.

    Attributes:
        views: move nothing: results share the memory of their input.
        allocations: move nothing: allocations and queries of properties.
        fills: write whole tensors and read nothing.
        moves: read and write, without counted work.
        overwrites: write their first tensor without reading it.
        gathers: read only what the indices select, and the indices.
        scatters: in place, write only what the indices select; out of place, copy the whole tensor too.
        accumulating_scatters: as scatters, but add to the old contents, 1 FLOP per value.
        pointwise: FLOP per element written.
        reduction: FLOP per element of the first tensor.
    """

    views: frozenset[str]
    allocations: frozenset[str]
    fills: frozenset[str]
    moves: frozenset[str]
    overwrites: frozenset[str]
    gathers: frozenset[str]
    scatters: frozenset[str]
    accumulating_scatters: frozenset[str]
    pointwise: Mapping[str, int]
    reduction: Mapping[str, int]

    @property
    def free(self) -> frozenset[str]:
        """Operators that move nothing."""
        return self.views | self.allocations

    @property
    def workless(self) -> frozenset[str]:
        """Operators that move data, but compute nothing."""
        return self.fills | self.moves | self.gathers | self.scatters


@cache
def load_operators() -> OperatorTable:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: a list is missing or unknown.
    """
    with profile_file("operators.toml") as raw:
        tables: dict[str, Any] = {
            name: content if isinstance(content, dict) else frozenset(content) for name, content in raw.items()
        }
        return OperatorTable(**tables)
