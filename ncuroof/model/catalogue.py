"""The operations that have a model, with parameters and help read from signatures and docstrings.

A new model is a function, and a line in `_FUNCTIONS`.
"""

from __future__ import annotations

import difflib
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ncuroof.errors import UnknownNameError
from ncuroof.model import attention_products, network, per_element, per_row, products
from ncuroof.model.operation import Operation

Kind = Literal["size", "flag", "choice", "dtype"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model.

    Attributes:
        name: name in Python; on the command line with hyphens for underscores.
        kind: a positive whole number, a flag, a choice of words, or an element type.
        is_required: has no default; such a size may be given by position.
        choices: allowed words of a choice.
        default: None if there is none.
        help: the parameter's line in the function's docstring.
    """

    name: str
    kind: Kind
    is_required: bool
    choices: tuple[str, ...]
    default: int | str | bool | None
    help: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model of an operation.

    Attributes:
        name: name on the command line.
        make: the function that returns the operation.
        parameters: in the order of the signature.
        summary: first line of the docstring, without "Return".
        formula: the docstring's paragraphs on work and bytes, and its source.
    """

    name: str
    make: Callable[..., Operation]
    parameters: tuple[Parameter, ...]
    summary: str
    formula: str

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the required sizes, in order."""
        return tuple(each.name for each in self.parameters if each.is_required)

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter called `name`, written with hyphens or underscores; None if there is none."""
        return next((each for each in self.parameters if each.name == name.replace("-", "_")), None)


_FUNCTIONS: Mapping[str, Callable[..., Operation]] = {
    "gemm": products.gemm,
    "linear": products.linear,
    "bmm": products.bmm,
    "sharded-gemm": network.sharded_gemm,
    "gemv": products.gemv,
    "dot": products.dot,
    "attention": attention_products.attention,
    "elementwise": per_element.elementwise,
    "activation": per_element.activation,
    "layernorm": per_row.layernorm,
    "rmsnorm": per_row.rmsnorm,
    "softmax": per_row.softmax,
    "rope": per_element.rope,
    "embedding": per_element.embedding,
    "cross-entropy": per_row.cross_entropy,
    "adamw": per_element.adamw,
    "custom": per_element.custom,
}


def models() -> Mapping[str, Model]:
    """Return all models by name."""
    return MappingProxyType({name: _model(name, function) for name, function in _FUNCTIONS.items()})


def model_by_name(name: str) -> Model:
    """Return the model called `name`.

    Raises:
        UnknownNameError: there is none; the hint lists similar names.
    """
    wanted = name.lower().replace("_", "-")
    if wanted not in _FUNCTIONS:
        near = difflib.get_close_matches(wanted, _FUNCTIONS, n=3, cutoff=0.5) or list(_FUNCTIONS)
        raise UnknownNameError(f"no model for an operation {name!r}", hint=f"use one of: {', '.join(near)}")
    return _model(wanted, _FUNCTIONS[wanted])


def _model(name: str, function: Callable[..., Operation]) -> Model:
    text = inspect.getdoc(function) or ""
    summary, _, rest = text.partition("\n\n")
    formula = rest.partition("\nArgs:")[0].rstrip()
    source = text.partition("\nSource: ")[2]
    hints = get_type_hints(function)
    arguments = _arguments(text)
    return Model(
        name,
        function,
        tuple(
            _parameter(each, hints[each.name], arguments.get(each.name, ""))
            for each in inspect.signature(function).parameters.values()
        ),
        summary.removeprefix("Return ").rstrip("."),
        f"{formula}\n\nSource: {source}",
    )


def _arguments(text: str) -> dict[str, str]:
    """Return the first line of each entry of a docstring's `Args:`, by name: help is one line, further lines are not read."""
    section = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    pairs = (
        line.strip().partition(": ") for line in section.splitlines() if line.startswith("    ") and line[4] != " "
    )
    return {name: said for name, _, said in pairs}


def _parameter(parameter: inspect.Parameter, hint: Any, said: str) -> Parameter:
    is_required = parameter.default is inspect.Parameter.empty
    default = None if is_required else parameter.default
    kinds = [each for each in get_args(hint) if each is not type(None)] if _is_union(hint) else [hint]
    if get_origin(kinds[0]) is Literal:
        return Parameter(parameter.name, "choice", is_required, get_args(kinds[0]), default, said)
    kind: Kind = "flag" if kinds[0] is bool else "size" if kinds[0] is int else "dtype"
    return Parameter(parameter.name, kind, is_required, (), default, said)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in {Union, types.UnionType}
