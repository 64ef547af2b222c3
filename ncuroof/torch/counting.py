"""Count every operator that PyTorch dispatches, by name and shapes, in a context manager.

Attention of meta tensors is dispatched as the fused kernel that a GPU runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import polars as pl
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.module_tracker import ModuleTracker

from ncuroof.errors import UnknownNameError
from ncuroof.formatting import counted, flop_count
from ncuroof.model import Machine, Operation, TensorShape, dtype_of, operator
from ncuroof.tables import check
from ncuroof.torch.expected_roofline import EXPECTED, ExpectedRoofline, against

_OUTSIDE = "Global"
"""ModuleTracker's name for calls outside any module."""


_AUTOCAST_IGNORED = "torch.autocast('cuda') does not convert meta tensors: they are counted in the types that they have"


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of an operator.

    Attributes:
        operation: its work and traffic; calls with the same shapes share one object.
        inputs: shapes of its input tensors.
        module: innermost module, or None.
        is_backward: called by autograd.
    """

    operation: Operation
    inputs: tuple[TensorShape, ...]
    module: str | None
    is_backward: bool


class _AutocastWatch(TorchFunctionMode):  # type: ignore[misc]  # PyTorch is not type-checked: it may be absent
    """Notes whether autocast for GPUs is on when a function is called, which dispatched operators can no longer see."""

    is_on = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note autocast, and call `func`."""
        self.is_on = bool(torch.is_autocast_enabled("cuda"))
        return func(*args, **(kwargs or {}))


class Expectation(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is not type-checked: it may be absent
    """Counts the operators that PyTorch calls while it is entered; entered again, it adds to its counts."""

    supports_higher_order_operators = True

    def __init__(self, *, fused_attention: bool) -> None:
        super().__init__()
        self._calls: list[_Call] = []
        self._operations: dict[tuple[Any, ...], Operation] = {}
        self._tracker = ModuleTracker()
        self._autocast = _AutocastWatch()
        self._ignored_autocast = False
        self._fused = FusedAttention() if fused_attention else None

    def __repr__(self) -> str:
        known = [operation for operation in self.operations if operation.is_known]
        work = flop_count(sum(operation.flop for operation in known))
        n_unknown = len(self._calls) - len(known)
        unknown = f" and {counted(n_unknown, 'call')} of unknown work" if n_unknown else ""
        return f"<Expectation: {counted(len(self._calls), 'call')}, {work}{unknown}>"

    def __enter__(self) -> Expectation:
        self._tracker.__enter__()
        self._autocast.__enter__()
        if self._fused is not None:
            self._fused.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        if self._fused is not None:
            self._fused.__exit__(*raised)
        self._autocast.__exit__(*raised)
        self._tracker.__exit__(*raised)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator, and count it."""
        result = func(*args, **(kwargs or {}))
        if not hasattr(func, "_schema"):  # higher-order operators (flex_attention) have no schema of their arguments
            inputs, outputs = tuple(map(_shape, _tensors(args, kwargs))), tuple(map(_shape, _tensors(result)))
            self._count(operator(str(func), inputs, outputs), inputs)
            return result
        self._ignored_autocast |= self._autocast.is_on and any(
            each.device.type == "meta" for each in _tensors(args, kwargs)
        )
        given = dict(_named(func, args, kwargs or {}))
        inputs, outputs = _shapes(func, given, result)
        key = (func, inputs, outputs, given.get("is_causal"), given.get("transposed"))
        if key not in self._operations:
            self._operations[key] = _operation(func, given, inputs, outputs)
        self._count(self._operations[key], inputs)
        return result

    def _count(self, operation: Operation, inputs: tuple[TensorShape, ...]) -> None:
        if operation.bytes or operation.flop:
            self._calls.append(_Call(operation, inputs, _innermost(self._tracker.parents), bool(self._tracker.is_bw)))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operation of each counted call, in order."""
        return tuple(call.operation for call in self._calls)

    def table(self) -> pl.DataFrame:
        """Return EXPECTED: one row per call, in order."""
        rows = [_row(number, call) for number, call in enumerate(self._calls)]
        return check(pl.DataFrame(rows, schema=EXPECTED, orient="row"), EXPECTED, table="EXPECTED")

    def roofline(self, gpu: Machine | str) -> ExpectedRoofline:
        """Return every call at its roofline time on a GPU or another machine that models know.

        Args:
            gpu: a machine, or its name, e.g. "h100-sxm".

        Raises:
            ArgumentError: `gpu` is neither a machine nor a name.
            UnknownNameError: no machine has that name, or several GPUs match it.
        """
        remarks = (_AUTOCAST_IGNORED,) if self._ignored_autocast else ()
        return against(self.table(), self.operations, gpu, remarks)


def _operation(
    func: Any, given: Mapping[str, Any], inputs: tuple[TensorShape, ...], outputs: tuple[TensorShape, ...]
) -> Operation:
    return operator(
        func._schema.name,  # noqa: SLF001  PyTorch's own counters read it too
        inputs,
        outputs,
        is_causal=bool(given.get("is_causal", False)),
        is_transposed=bool(given.get("transposed", False)),
        is_tf32=_allows_tf32(is_convolution="conv" in func.__name__),
    )


def _allows_tf32(*, is_convolution: bool) -> bool:
    """Return whether PyTorch runs FP32 products in TF32 on GPUs that have it; versions before 2.9 only have `allow_tf32`."""
    backend = torch.backends.cudnn if is_convolution else torch.backends.cuda.matmul
    settings = getattr(backend, "conv", None) if is_convolution else backend
    precision = getattr(settings, "fp32_precision", None)
    return bool(backend.allow_tf32) if precision is None else bool(precision == "tf32")


def _named(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the arguments given, in the order of the signature."""
    for place, argument in enumerate(func._schema.arguments):  # noqa: SLF001
        if place < len(args):
            yield argument.name, args[place]
        elif argument.name in kwargs:
            yield argument.name, kwargs[argument.name]


def _shapes(
    func: Any, given: Mapping[str, Any], result: Any
) -> tuple[tuple[TensorShape, ...], tuple[TensorShape, ...]]:
    """Return the shapes of inputs and of tensors written: new results, and arguments changed in place."""
    changed = {
        argument.name
        for argument in func._schema.arguments  # noqa: SLF001
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    targets = {  # `out=` arguments are written, not read
        argument.name
        for argument in func._schema.arguments  # noqa: SLF001
        if argument.name in changed and getattr(argument, "is_out", False)
    }
    inputs = _tensors(*(value for name, value in given.items() if name not in targets))
    in_place = list(_tensors(*(value for name, value in given.items() if name in changed)))
    known = {id(each) for each in (*inputs, *in_place)}
    outputs = [each for each in _tensors(result) if id(each) not in known]
    return tuple(map(_shape, inputs)), tuple(map(_shape, (*outputs, *in_place)))


def _tensors(*values: Any) -> tuple[Any, ...]:
    return tuple(each for each in tree_leaves(values) if isinstance(each, torch.Tensor))


def _shape(tensor: Any) -> TensorShape:
    """Return a tensor's shape; a dimension with stride 0 (expanded) is in memory only once."""
    n_stored = None
    if tensor.layout == torch.strided and 0 in tensor.stride():
        n_stored = 1
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            n_stored *= size if stride else min(size, 1)
    return TensorShape(tuple(tensor.shape), _dtype(tensor), n_stored)


def _dtype(tensor: Any) -> str:
    """Return ncuroof's name of the element type, or for an unknown type an integer of the same width."""
    try:
        return dtype_of(str(tensor.dtype)).name
    except UnknownNameError:
        return {1: "int8", 2: "int16", 4: "int32"}.get(tensor.element_size(), "int64")


def _innermost(parents: set[str]) -> str | None:
    return max(parents - {_OUTSIDE}, key=lambda name: (name.count("."), name), default=None)


def _row(number: int, call: _Call) -> tuple[Any, ...]:
    operation = call.operation
    return (
        number,
        operation.name,
        call.module,
        call.is_backward,
        ", ".join("×".join(map(str, each.sizes)) or "1" for each in call.inputs),
        call.inputs[0].dtype if call.inputs else None,
        operation.flop if operation.is_known else None,
        operation.matrix_flop if operation.is_known else None,
        operation.read_bytes,
        operation.written_bytes,
        operation.intensity_flop_per_byte,
    )


class FusedAttention(TorchFunctionMode):  # type: ignore[misc]  # PyTorch is not type-checked: it may be absent
    """Redirects `scaled_dot_product_attention` of meta tensors to the operator that PyTorch chooses on CUDA.

    On the meta device PyTorch decomposes the function into products and a softmax that no GPU would run. Calls without a mask go to
    FlashAttention; those with a mask go to the memory-efficient kernel, because FlashAttention does not accept masks.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, or the fused operator instead."""
        given = dict(kwargs or {})
        if func is torch.nn.functional.multi_head_attention_forward:
            # This mode is disabled within the call, whose body looks up attention in torch.nn.functional.
            with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _attention_for_meta_tensors):
                return func(*args, **given)
        if func is torch.nn.functional.scaled_dot_product_attention:
            return _attention_for_meta_tensors(*args, **given)
        return func(*args, **given)


_AS_IT_IS = torch.nn.functional.scaled_dot_product_attention


def _attention_for_meta_tensors(*args: Any, **given: Any) -> Any:
    query = args[0] if args else given["query"]
    if query.device.type == "meta" and query.dim() == 4:
        return _fused(*args, **given)
    return _AS_IT_IS(*args, **given)


def _fused(  # noqa: PLR0913, PLR0917  PyTorch's signature
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if attn_mask is None:
        return torch.ops.aten._scaled_dot_product_flash_attention(  # noqa: SLF001  the operator's name
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    if enable_gqa:
        repeats = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
    bias = attn_mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    return torch.ops.aten._scaled_dot_product_efficient_attention(  # noqa: SLF001
        query, key, value, bias, torch.is_grad_enabled(), dropout_p, is_causal, scale=scale
    )[0]
