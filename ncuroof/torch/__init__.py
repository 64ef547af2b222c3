"""Within a PyTorch program: counting a network's work and traffic before it runs on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncuroof.errors import MissingExtraError

if TYPE_CHECKING:
    from ncuroof.torch.counting import Expectation

__all__ = ["expect"]


def expect(*, fused_attention: bool = True) -> Expectation:
    """Return a context manager that counts FLOPs and compulsory bytes of every operator that PyTorch calls within it.

        with ncuroof.torch.expect() as expected:
            network(x).sum().backward()
        expected.table()                        # a polars table, one row per call
        print(expected.roofline("h100-sxm"))    # lower bounds: where the time will go

    No GPU is needed. On the meta device (`with torch.device("meta"): …`) nothing is computed or allocated either, so a network
    of any size is counted in the time that PyTorch takes to dispatch its operators.

    Args:
        fused_attention: count `scaled_dot_product_attention` of meta tensors as the fused kernel that runs on a GPU. Otherwise it
            counts as the products and softmax into which PyTorch decomposes it on the meta device.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    try:
        from ncuroof.torch.counting import Expectation  # noqa: PLC0415  loads PyTorch
    except ImportError as error:
        if error.name != "torch":
            raise  # another module is missing: installing PyTorch would not help
        raise MissingExtraError("expect() needs PyTorch", hint="pip install 'ncuroof[torch]'") from error
    return Expectation(fused_attention=fused_attention)
