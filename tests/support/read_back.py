"""Reads counters back through NVIDIA's `ncu_report`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ncu_report

if TYPE_CHECKING:
    from pathlib import Path


class Counters:
    """The counters of one workload, as `ncu_report` returns them; a missing one raises KeyError."""

    def __init__(self, action: Any) -> None:
        self._action = action

    def __getitem__(self, name: str) -> Any:
        metric = self._action.metric_by_name(name)
        if metric is None:
            raise KeyError(name)
        return metric.value()

    def __contains__(self, name: str) -> bool:
        return self._action.metric_by_name(name) is not None

    def names(self) -> list[str]:
        """Return the names of all counters."""
        return list(self._action.metric_names())

    def duration_s(self) -> float:
        return float(self["gpu__time_duration.sum"]) / 1e9

    def is_failed(self) -> bool:
        """Return whether the collection failed."""
        return math.isnan(self.duration_s())

    def flop(self, kind: str) -> float:
        """Return floating-point operations: of kind "d", "f" or "h" (pairs), or of all "tensor" paths."""
        if kind == "tensor":
            paths = [name for name in self.names() if name.startswith("sm__ops_path_tensor_op_")]
            return float(sum(self[name] for name in paths if name.endswith(".sum")))
        rate = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
        add, mul, fma = (self[rate.format(kind + op)] for op in ("add", "mul", "fma"))
        return float((add + mul + 2 * fma) * self["smsp__cycles_elapsed.avg.per_second"] * self.duration_s())


def actions(path: Path) -> list[Any]:
    """Return the workloads of a report in file order, as `ncu_report` returns them."""
    report = ncu_report.load_report(str(path)).range_by_idx(0)
    return [report.action_by_idx(index) for index in range(report.num_actions())]
