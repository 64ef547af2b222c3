"""`ncuroof model`: a back-of-the-envelope roofline of an operation, before any code is written."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from ncuroof.cli.model_options import (
    DEFAULT_MACHINE,
    default_dtype,
    list_option,
    own_options,
    rate,
    shared_options,
    sizes_given,
    time_ns,
)
from ncuroof.cli.options import common
from ncuroof.cli.outputs import Outputs
from ncuroof.cli.plain_characters import echo
from ncuroof.errors import ModelError
from ncuroof.model.catalogue import Model, model_by_name, models

_HELP_WIDTH = 76
_FULL_LINE = 100
"""A docstring line longer than this continues in the next, indented line; after a shorter one, that is a line of its own."""


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
    """Return paragraphs for click's help: formulas keep their line breaks, and click fills prose to the terminal's width."""
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
    from ncuroof.model.study import Request, study  # noqa: PLC0415
    from ncuroof.present.documents.model import model_document  # noqa: PLC0415
    from ncuroof.present.model_formats import MODEL_FORMATS  # noqa: PLC0415

    sizes, options = sizes_given(found, given)
    measured = {
        "peak_flop_per_s": rate(given["peak_flop_per_s"], "--peak-flop-per-s"),
        "bandwidth_bytes_per_s": rate(given["bandwidth_bytes_per_s"], "--bandwidth-bytes-per-s"),
    }
    answered = study(
        Request(
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
    outputs.write(lambda form: MODEL_FORMATS[form](document))
