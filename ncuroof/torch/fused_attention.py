"""Attention of meta tensors, dispatched as the fused kernel that a GPU runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class FusedAttention(TorchFunctionMode):  # type: ignore[misc]  # PyTorch is not type-checked: it may be absent
    """Redirects `scaled_dot_product_attention` of meta tensors to the operator that PyTorch chooses on CUDA.

    On the meta device PyTorch decomposes the function into products and a softmax that no GPU would run. Calls without a mask go to
    FlashAttention; those with a mask go to the memory-efficient kernel, which alone of the two takes masks.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, or the fused operator instead."""
        given = dict(kwargs or {})
        if func is torch.nn.functional.multi_head_attention_forward:
            # This mode is disabled within the call, whose body looks up attention in torch.nn.functional.
            with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _of_meta_or_as_it_is):
                return func(*args, **given)
        if func is torch.nn.functional.scaled_dot_product_attention:
            return _of_meta_or_as_it_is(*args, **given)
        return func(*args, **given)


_AS_IT_IS = torch.nn.functional.scaled_dot_product_attention


def _of_meta_or_as_it_is(*args: Any, **given: Any) -> Any:
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
