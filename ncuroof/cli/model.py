"""`ncuroof model`: a back-of-the-envelope roofline of an operation, before any code is written.

Each operation is a command. Some options are common to all operations, the others come from the operation's model.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from ncuroof.cli.options import common, gpus_begun
from ncuroof.cli.outputs import Outputs, written_as
from ncuroof.cli.streams import echo
from ncuroof.errors import ModelError
from ncuroof.model.catalogue import Model, Parameter, model_by_name, models
from ncuroof.model.study import sizes_of
from ncuroof.present.formats import WRITERS

_HELP_WIDTH = 76
_FULL_LINE = 100
"""A longer docstring line is continued by the indented line after it; after a shorter one, an indented line stands alone."""

DEFAULT_MACHINE = "h100-sxm"

_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)"
_RATE = re.compile(rf"^{_NUMBER}\s*([kMGTPE]?)$")
_FACTOR_BY_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_TIME = re.compile(rf"^{_NUMBER}\s*(ns|us|µs|ms|s)$")
_NS_BY_UNIT = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


class _Operations(click.Group):
    """One command per operation that has a model."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(models())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        return _command(model_by_name(name))


@click.group(cls=_Operations, invoke_without_command=True)
@common()
@click.pass_context
def model(ctx: click.Context) -> None:
    """Estimate the best possible time of an operation, before any code is written: FLOPs, bytes, ridge point, bound and time.

    ncuroof model gemm 4096 4096 4096 --dtype bf16 --gpu h100-sxm

    ncuroof model linear 1:4096 8192 8192 --gpu a100-sxm-80gb --gpu h100-sxm

    Without an operation, this lists all of them. `ncuroof model gemm --help` shows the formulas of one.
    """
    if ctx.invoked_subcommand is None:
        echo(_listing(), nl=False)


def _listing() -> str:
    from ncuroof.model.machines import accelerators  # noqa: PLC0415

    lines = ["operations"]
    for each in models().values():
        lines.append(f"  {each.name} {' '.join(size.upper() for size in each.sizes)}")
        lines.append(f"      {each.summary}")
    lines.append("machines: the GPUs of `ncuroof gpus`, and for models only")
    lines += [f"  {each.id}: {each.name}" for each in accelerators()]
    return "\n".join(lines) + "\n"


def _command(found: Model) -> click.Command:
    places = " ".join(f"[{size.upper()}]" for size in found.sizes)
    return click.command(
        found.name,
        params=[click.Argument(["values"], nargs=-1, metavar=places), *own_options(found)],
        help=f"{found.summary[0].upper()}{found.summary[1:]}.\n\n{_verbatim(found.formula)}\n\n{_SIZES_HELP}",
        short_help=found.summary,
    )(shared_options(lambda outputs, given: _run(found, outputs, given)))


_SIZES_HELP = (
    "Give sizes by position or by name (m=4096), as 4096, 1,8,32, 1:4096 (doubling) or 256:4096:256 (in steps); several values "
    "make a sweep. Times are bounds: shortest if everything overlaps (min time), longest if nothing does."
)


def _verbatim(text: str) -> str:
    """Return paragraphs for click's help: formulas keep their line breaks, prose is filled to the width of the terminal."""
    return "\n\n".join(_formulas(each) if _is_formula(each) else each for each in text.split("\n\n"))


def _is_formula(paragraph: str) -> bool:
    """Return whether a paragraph has a line that is laid out in columns or indented."""
    return any("  " in line.lstrip() or line.startswith(" ") for line in paragraph.splitlines())


def _formulas(paragraph: str) -> str:
    lines: list[str] = []
    for line in paragraph.splitlines():
        if line.startswith(" ") and lines and len(lines[-1]) > _FULL_LINE:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    indent = " " * 7
    filled = (textwrap.fill(line, _HELP_WIDTH, subsequent_indent=indent, break_long_words=False) for line in lines)
    return "\b\n" + "\n".join(filled)


def _run(found: Model, outputs: Outputs, given: dict[str, Any]) -> None:
    from ncuroof.model.machines import with_measured  # noqa: PLC0415  loads polars
    from ncuroof.model.study import StudyRequest, study  # noqa: PLC0415
    from ncuroof.present.documents.model import model_document  # noqa: PLC0415

    outputs.check(())
    sizes, options = sizes_given(found, given)
    measured = {
        "peak_flop_per_s": rate(given["peak_flop_per_s"], "--peak-flop-per-s"),
        "bandwidth_bytes_per_s": rate(given["bandwidth_bytes_per_s"], "--bandwidth-bytes-per-s"),
    }
    answered = study(
        StudyRequest(
            model=found,
            sizes=sizes,
            options=options,
            dtypes=list_option(given["dtype"] or (default_dtype(found),)),
            machines=[with_measured(name, **measured) for name in list_option(given["gpu"] or (DEFAULT_MACHINE,))],
            precision=given["precision"],
            link_bytes_per_s=rate(given["link_bytes_per_s"], "--link-bytes-per-s"),
        )
    )
    achieved = rate(given["achieved_flop_per_s"], "--achieved-flop-per-s"), time_ns(given["achieved_time"])
    if any(achieved) and (all(achieved) or len(answered.rows) > 1):
        raise ModelError(
            "expected one measured rate or time, for one operation on one machine, "
            f"found {sum(map(bool, achieved))} for {len(answered.rows)}",
            hint="give one size, one --dtype and one --gpu",
        )
    document = model_document(answered, achieved_flop_per_s=achieved[0], achieved_ns=achieved[1])
    outputs.write(lambda form: WRITERS["model"][form](document))


def own_options(model: Model) -> list[click.Option]:
    """Return an option per parameter of a model, except --dtype, which all operations have."""
    return [_option(each) for each in model.parameters if each.name != "dtype"]


def _option(parameter: Parameter) -> click.Option:
    flag = "--" + parameter.name.replace("_", "-")
    text = parameter.help[:1].upper() + parameter.help[1:]
    names = [flag, parameter.name]
    if parameter.kind == "flag":
        return click.Option(names, is_flag=True, help=text)
    if parameter.kind == "choice":
        choice = click.Choice(parameter.choices)
        return click.Option(names, type=choice, default=parameter.default, show_default=True, help=text)
    metavar = "SIZE" if parameter.kind == "size" else "TYPE"
    return click.Option(names, metavar=metavar, help=text)


def shared_options(run: Callable[[Outputs, dict[str, Any]], None]) -> Callable[..., None]:
    """Return a command that calls `run`, with the options that all operations have."""

    @click.option(
        "--dtype",
        multiple=True,
        metavar="TYPE",
        help="Element type: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, … Repeatable.",
    )
    @click.option(
        "--gpu",
        multiple=True,
        metavar="NAME",
        shell_complete=gpus_begun,
        help=f"Machine; default: {DEFAULT_MACHINE}. Repeatable.",
    )
    @click.option(
        "--precision",
        metavar="NAME",
        help="Compute roof for matrix products, e.g. fp32 for a kernel without tensor cores.",
    )
    @click.option(
        "--link-bytes-per-s", metavar="RATE", help="Bandwidth between devices that share the work, e.g. 450G."
    )
    @click.option(
        "--peak-flop-per-s", metavar="RATE", help="Peak rate to use instead of the data sheet's, e.g. a measured one."
    )
    @click.option(
        "--bandwidth-bytes-per-s", metavar="RATE", help="Memory bandwidth to use instead of the data sheet's."
    )
    @click.option("--achieved-flop-per-s", metavar="RATE", help="Measured rate, to see how far below the roof it is.")
    @click.option("--achieved-time", metavar="TIME", help="Measured time, e.g. 180us, instead of a rate.")
    @written_as(*WRITERS["model"])
    @common()
    def with_options(to: Outputs, /, **given: Any) -> None:  # a size may be called outputs
        run(to, given)

    return with_options


def sizes_given(model: Model, given: Mapping[str, Any]) -> tuple[dict[str, Sequence[int]], dict[str, Any]]:
    """Return the sizes and other arguments of a model from the command line: by position, as name=value, or as options.

    Raises:
        ModelError: a size is missing, given twice, unknown, or malformed.
    """
    texts: dict[str, str] = {}
    places = [value for value in given["values"] if "=" not in value]
    if len(places) > len(model.sizes):
        raise ModelError(f"{model.name}: expected {len(model.sizes)} sizes, found {len(places)}", hint=_usage(model))
    named = [value.split("=", 1) for value in given["values"] if "=" in value]
    free = [
        size
        for size in model.sizes
        if size not in {name.replace("-", "_") for name, _ in named} and given[size] is None
    ]
    pairs = [
        *named,
        *((name, str(given[name])) for name in _given_as_options(model, given)),
        *zip(free, places, strict=False),
    ]
    if len(places) > len(free):
        raise ModelError(f"{model.name}: a size is given twice", hint=_usage(model))
    for name, text in pairs:
        parameter = model.parameter(name)
        if parameter is None or parameter.name == "dtype":
            raise ModelError(f"{model.name}: no size is called {name!r}", hint=_usage(model))
        if parameter.name in texts:
            raise ModelError(f"{model.name}: {name} is given twice", hint=_usage(model))
        texts[parameter.name] = text
    missing = [size for size in model.sizes if size not in texts]
    if missing:
        raise ModelError(f"{model.name}: no value for {' and '.join(missing)}", hint=_usage(model))
    return _sorted(model, texts, given)


def _given_as_options(model: Model, given: Mapping[str, Any]) -> list[str]:
    return [
        each.name
        for each in model.parameters
        if each.kind in {"size", "dtype"} and each.name != "dtype" and given[each.name] is not None
    ]


def _sorted(
    model: Model, texts: Mapping[str, str], given: Mapping[str, Any]
) -> tuple[dict[str, Sequence[int]], dict[str, Any]]:
    sizes: dict[str, Sequence[int]] = {}
    options: dict[str, Any] = {}
    for each in model.parameters:
        if each.kind == "size" and each.name in texts:
            sizes[each.name] = sizes_of(texts[each.name])
        elif each.kind == "dtype" and each.name in texts:
            options[each.name] = texts[each.name]
        elif each.kind == "flag":
            options[each.name] = given[each.name] or _is_on(texts.get(each.name))
        elif each.kind == "choice":
            options[each.name] = _chosen(each, texts.get(each.name) or given[each.name])
    return sizes, options


def _is_on(text: str | None) -> bool:
    return text is not None and text.lower() in {"1", "true", "yes", "on"}


def _chosen(parameter: Parameter, text: str) -> str:
    if text not in parameter.choices:
        raise ModelError(f"{parameter.name}: expected one of {', '.join(parameter.choices)}, found {text!r}")
    return text


def _usage(model: Model) -> str:
    sizes = " ".join(size.upper() for size in model.sizes)
    return f"usage: ncuroof model {model.name} {sizes}, or {model.sizes[0]}=…; --help for more"


def default_dtype(model: Model) -> str:
    """Return a model's default element type."""
    parameter = model.parameter("dtype")
    return str(parameter.default) if parameter is not None else "bf16"


def list_option(values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a repeatable option without duplicates."""
    return tuple(dict.fromkeys(values))


def rate(text: str | None, option: str) -> float | None:
    """Return a rate, such as "3.35e12" or "3.35T", in base units.

    Raises:
        ModelError: it is malformed or not positive.
    """
    if text is None:
        return None
    found = _RATE.match(text.strip())
    value = float(found[1]) * _FACTOR_BY_PREFIX[found[2]] if found else 0.0
    if not 0 < value < float("inf"):
        raise ModelError(f"{option}: expected a positive number, found {text!r}", hint="e.g. 3.35e12 or 3.35T")
    return value


def time_ns(text: str | None) -> float | None:
    """Return a time, such as "180us" or "1.2ms", in ns.

    Raises:
        ModelError: it is malformed or not positive.
    """
    if text is None:
        return None
    found = _TIME.match(text.strip())
    value = float(found[1]) * _NS_BY_UNIT[found[2]] if found else 0.0
    if not 0 < value < float("inf"):
        raise ModelError(f"--achieved-time: expected a time with a unit, found {text!r}", hint="e.g. 180us or 1.2ms")
    return value
