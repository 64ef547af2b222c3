"""Gates: conditions that a run has to meet, against the run before or by itself.

time:+5%                         the run's GPU time grows by at most 5 %
step:+5%                         the wall-clock time of a step grows by at most 5 %
kernel(flash.*).time:+3%         the time of one launch of each such kernel grows by at most 3 %
kernel(flash.*).roof_frac>=0.7   roofline time over duration of each such kernel
findings.high==0                 findings of high severity in the run after
run.recoverable_frac<0.3         time above the roofline over GPU time, in the run after
run.idle_frac<0.2                share of a step in which the GPU is idle, in the run after
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncuroof.comparison.run import numbers_of_groups
from ncuroof.errors import GateError

_GATE = re.compile(
    r"^\s*(?:(?P<subject>time|step|run|findings)|kernel\((?P<pattern>.*)\))(?:\.(?P<metric>[A-Za-z_][\w.]*))?"
    r"\s*(?::\s*(?P<limit>[+-]\d+(?:\.\d+)?)\s*%|(?P<op>>=|<=|==|!=|<|>)\s*(?P<value>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?))\s*$"
)
_HINT = (
    "write gates like time:+5%, step:+5%, kernel(REGEX).time:+3%, kernel(REGEX).roof_frac>=0.7, findings.high==0, "
    "run.recoverable_frac<0.3"
)
_SEVERITIES = ("high", "medium")
_RUN_METRICS = ("duration_ns", "recoverable_ns", "recoverable_frac", "n_kernels", "n_failed", "step_ns", "idle_frac")
_TIME = "time"


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition.

    Attributes:
        text: as it was written.
        subject: "time", "step", "run", "findings" or "kernel".
        pattern: regular expression of kernel names, for "kernel".
        metric: what of the subject; "time" where none was named.
        limit_frac: most growth from the run before, or None.
        op, value: comparison and number, where there is no limit.
    """

    text: str
    subject: str
    pattern: re.Pattern[str] | None
    metric: str
    limit_frac: float | None
    op: str
    value: float


def parse_gate(text: str) -> Gate:
    """Return the gate that a text describes.

    Raises:
        GateError: it describes none.
    """
    found = _GATE.match(text)
    if found is None:
        raise GateError(f"not a gate: {text!r}", hint=_HINT)
    subject = found["subject"] or "kernel"
    metric = found["metric"] or _TIME
    _check(text, subject, metric, has_limit=found["limit"] is not None)
    try:
        pattern = re.compile(found["pattern"]) if found["pattern"] is not None else None
    except re.error as error:
        raise GateError(f"{found['pattern']!r} in {text!r} is not a regular expression: {error}", hint=_HINT) from error
    return Gate(
        text=text.strip(),
        subject=subject,
        pattern=pattern,
        metric=metric,
        limit_frac=float(found["limit"]) / 100 if found["limit"] else None,
        op=found["op"] or "",
        value=float(found["value"]) if found["value"] else 0.0,
    )


def _check(text: str, subject: str, metric: str, *, has_limit: bool) -> None:
    if has_limit and metric != _TIME:
        raise GateError(f"only time takes a limit in percent: {text!r}", hint=_HINT)
    if not has_limit and metric == _TIME:
        raise GateError(f"time needs a limit in percent: {text!r}", hint=_HINT)
    known = {
        "findings": _SEVERITIES,
        "run": _RUN_METRICS,
        "time": (_TIME,),
        "step": (_TIME,),
        "kernel": (_TIME, *numbers_of_groups()),
    }[subject]
    if metric not in known:
        raise GateError(f"{subject} has no {metric!r}; it has {', '.join(known)}", hint=_HINT)
