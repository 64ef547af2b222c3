"""Work and compulsory traffic of PyTorch's operators, from their names and shapes.

`operator` serves both calls that are counted as they are dispatched (shapes of results known) and calls that were recorded: NVTX
ranges of `torch.autograd.profiler.emit_nvtx(record_shapes=True)`, which give names and shapes of inputs only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ncuroof.metrics.torch_ranges import torch_range
from ncuroof.model.dtypes import DTYPES, dtype_of
from ncuroof.model.operation import EACH_ONCE, Operation, TensorShape, Traffic, Work, vector
from ncuroof.model.operator_work import FAMILIES, OperatorCall, OperatorTable, Uncountable, load_operators, results_of
from ncuroof.resources import FrozenMapping

_NAMESPACE = re.compile(r"^(torch\.ops\.)?aten(::|\.)")
_FOREACH = "_foreach_"
_VIEWED = "a view or an allocation: moves nothing"
_UNKNOWN = "each tensor once; the work of this operator is unknown"

_ATEN = re.compile(r"aten::\w+")

_MOST_ELEMENTS = 2**48
"""Largest tensor that is accepted: a thousand times a GPU's memory. Larger sizes are not PyTorch's; their work overflows."""


def operator(
    name: str,
    inputs: Sequence[TensorShape | Sequence[int]],
    outputs: Sequence[TensorShape] | None = None,
    *,
    dtype: str = "fp32",
    is_causal: bool = False,
    is_transposed: bool = False,
    is_tf32: bool = False,
) -> Operation:
    """Return the work and compulsory traffic of a PyTorch operator.

    Args:
        name: "aten::mm", "aten.mm.default" or "mm"; in-place (`add_`) and `_foreach_` forms count as the plain operator.
        inputs: tensors in the order of the operator's signature. Bare sizes, as profilers record them, have the type `dtype`;
            empty ones represent arguments that are not tensors, and are left out.
        outputs: tensors written, including those changed in place; default: those that follow from the inputs.
        dtype: type of inputs given as bare sizes.
        is_causal: attention has a causal mask, so only the scores that it does not mask are counted.
        is_transposed: a convolution is transposed.
        is_tf32: products of FP32 operands run in TF32, as PyTorch does if it is enabled (for convolutions: by default).

    Returns:
        The operation. `is_known` is False if the operator's work is unknown, or needs shapes of results that are not given
        (convolutions). Views and allocations have neither work nor traffic.

    Raises:
        UnknownNameError: no such element type.

    Source: PyTorch's native_functions.yaml for signatures; `profiles/operators.toml` for counts.
    """
    plain, table = plain_name(name), load_operators()
    label = FrozenMapping({"operator": name})
    if plain in table.free:
        return Operation(name, label, (), (), _VIEWED)
    tensors = [_tensor(each, dtype) for each in inputs]
    found = [each for each in tensors if each is not None]
    written = outputs
    try:
        if written is None and _FOREACH not in name:
            written = results_of(plain, tensors, table)
        if written is None:
            raise Uncountable
        call = OperatorCall(
            plain,
            tuple(tensors),
            tuple(written),
            is_causal=is_causal,
            is_transposed=is_transposed,
            is_of_lists=_FOREACH in name,
        )
        work = _work(call, table, is_tf32=is_tf32)
    except (Uncountable, IndexError, ValueError):  # including shapes that do not fit the signature
        return Operation(name, label, (), _each_once(found, written or ()), _UNKNOWN, is_known=False)
    is_in_place = _without_overload(name).endswith("_")
    return Operation(name, label, work, _traffic(plain, found, written, table, is_in_place=is_in_place), EACH_ONCE)


def plain_name(name: str) -> str:
    """Return an operator's name without namespace, overload, `_foreach_` and the trailing underscore of in-place forms."""
    plain = _without_overload(name).removeprefix(_FOREACH)
    return plain[:-1] if plain.endswith("_") and not plain.endswith("__") else plain


def _without_overload(name: str) -> str:
    return _NAMESPACE.sub("", name).partition(".")[0].partition(",")[0].strip()


def _tensor(given: TensorShape | Sequence[int], dtype: str) -> TensorShape | None:
    if isinstance(given, TensorShape):
        return given
    return TensorShape(tuple(given), dtype) if given else None


def _work(call: OperatorCall, table: OperatorTable, *, is_tf32: bool) -> tuple[Work, ...]:
    family = FAMILIES.get(call.name)
    if family is not None:
        work = family(call)
    elif call.name in table.pointwise:
        work = _vector_work(call, table.pointwise[call.name] * sum(each.n_elements for each in _computed(call)))
    elif call.name in table.reduction:
        reduced = call.tensors if call.is_of_lists else call.tensors[:1]
        work = _vector_work(call, table.reduction[call.name] * sum(each.n_elements for each in reduced))
    elif call.name in table.accumulating_scatters:
        work = _vector_work(call, _values(call.tensors, call.outputs).n_elements)
    elif call.name in table.workless:
        work = ()
    else:
        raise Uncountable
    if not any(each.is_floating for each in (*call.tensors, *call.outputs)):
        # only integers: products have a roof, other work is not FLOP
        work = tuple(each for each in work if each.is_product)
    fp32, tf32 = DTYPES["fp32"].matrix, DTYPES["tf32"].matrix
    widened = (
        replace(each, precisions=tf32) if is_tf32 and each.is_product and each.precisions == fp32 else each
        for each in work
    )
    return tuple(each for each in widened if each.flop)


def _computed(call: OperatorCall) -> Sequence[TensorShape]:
    """Return the results that a pointwise operator computes; a boolean mask beside another result does not count."""
    return [each for each in call.outputs if dtype_of(each.dtype).name != "bool" or len(call.outputs) == 1]


def _vector_work(call: OperatorCall, flop: float) -> tuple[Work, ...]:
    """Return work other than products, in the widest floating-point type among the call's tensors, else FP32."""
    types = [dtype_of(each.dtype) for each in (*call.tensors, *call.outputs) if each.is_floating]
    return (vector(flop, max(types, key=lambda each: each.bits, default=DTYPES["fp32"])),)


def _traffic(
    name: str,
    tensors: Sequence[TensorShape],
    written: Sequence[TensorShape],
    table: OperatorTable,
    *,
    is_in_place: bool,
) -> tuple[Traffic, ...]:
    """Return the compulsory traffic: each tensor once, or less if indices select a part, or if a tensor is overwritten unread."""
    out_bytes = sum(each.bytes for each in written)
    if name in table.fills:
        return _moved(0.0, out_bytes)
    if name in table.gathers:
        source, indices = tensors[0], tensors[1:]
        pointed = max(out_bytes, sum(each.n_elements for each in indices) * dtype_of(source.dtype).bytes)
        return _moved(min(pointed, source.bytes) + sum(each.bytes for each in indices), out_bytes)
    if is_in_place and name in table.scatters | table.accumulating_scatters:
        touched = _values(tensors, written).bytes
        is_added = name in table.accumulating_scatters
        return _moved(sum(each.bytes for each in tensors[1:]) + (touched if is_added else 0.0), touched)
    if name in table.overwrites and len(tensors) > 1:
        tensors = tensors[1:]
    return _each_once(tensors, written)


def _values(tensors: Sequence[TensorShape], written: Sequence[TensorShape]) -> TensorShape:
    """Return the values that a scatter writes: its last floating-point tensor after the target; without any, the output."""
    values = [each for each in tensors[1:] if each.is_floating]
    return values[-1] if values else written[0]


def _each_once(tensors: Sequence[TensorShape], written: Sequence[TensorShape]) -> tuple[Traffic, ...]:
    return _moved(sum(each.bytes for each in tensors), sum(each.bytes for each in written))


def _moved(read_bytes: float, written_bytes: float) -> tuple[Traffic, ...]:
    moved = (Traffic("inputs", read_bytes), Traffic("outputs", written_bytes, is_written=True))
    return tuple(each for each in moved if each.bytes)


def recorded_operator(text: str, *, dtype: str) -> Operation | None:
    """Return the operator that an NVTX range names, e.g. "aten::mm, seq = 3, op_id = 5, sizes = [[64, 128], [128, 256]]".

    Args:
        text: text of the range.
        dtype: element type of all its tensors, which ranges do not contain.

    Returns:
        The operation; None if the range is not an operator's, or has no sizes that tensors can have.

    Raises:
        UnknownNameError: no such element type.
    """
    found = torch_range(text.strip())
    if found.sizes is None or not _ATEN.fullmatch(found.name):
        return None
    try:
        shapes = list(_shapes(json.loads(found.sizes)))
        return operator(found.name, shapes, dtype=dtype) if all(map(_is_possible, shapes)) else None
    except (ValueError, TypeError, OverflowError, RecursionError):  # a range of other code that looks like PyTorch's
        return None


def _is_possible(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor can have these sizes. Floats are multiplied, because huge integers would fill the memory."""
    return all(0 <= size <= _MOST_ELEMENTS for size in shape) and math.prod(map(float, shape)) <= _MOST_ELEMENTS


def _shapes(sizes: list[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of each argument in order; lists of tensors one by one."""
    for each in sizes:
        if isinstance(each, list) and each and isinstance(each[0], list):
            yield from _shapes(each)
        else:
            yield tuple(int(size) for size in each)
