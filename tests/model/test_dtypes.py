"""Element types by their names."""

from __future__ import annotations

import pytest

from ncuroof.errors import UnknownNameError
from ncuroof.model.dtypes import dtype_of


@pytest.mark.parametrize("name", ["foo", "fp31"])
def test_an_unknown_type_lists_all_types(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no element type is called '{name}'") as caught:
        dtype_of(name)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("use one of: fp64, fp32, tf32, fp16, bf16, fp8,")
    assert caught.value.hint.endswith("int64, int32, int16, bool")
