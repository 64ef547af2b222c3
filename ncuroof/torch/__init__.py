"""What runs within a PyTorch program: counting a network's work and traffic before it runs on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncuroof.errors import MissingExtraError

if TYPE_CHECKING:
    from ncuroof.torch.counting import Expectation

__all__ = ["expect"]


def expect(*, fused_attention: bool = True) -> Expectation:
    """Return a context that counts FLOPs and compulsory bytes of every operator that PyTorch calls within it.

        with ncuroof.torch.expect() as expected:
            network(x).sum().backward()
        expected.table()                        # polars, a row per call
        print(expected.roofline("h100-sxm"))    # where the time will go, at least

    No GPU is needed. On the meta device (`with torch.device("meta"): …`) nothing is computed or allocated either, so a network
    of any size is counted in the time that PyTorch takes to call its operators.

    Args:
        fused_attention: `scaled_dot_product_attention` of meta tensors counts as the fused kernel that runs on a GPU; PyTorch
            itself takes it apart there.

    Raises:
        MissingExtraError: PyTorch is not installed.
    """
    try:
        from ncuroof.torch.counting import Expectation  # noqa: PLC0415  loads PyTorch
    except ImportError as error:
        if error.name != "torch":
            raise  # something else is missing, and PyTorch would not mend it
        raise MissingExtraError("expect() needs PyTorch", hint="pip install 'ncuroof[torch]'") from error
    return Expectation(fused_attention=fused_attention)
