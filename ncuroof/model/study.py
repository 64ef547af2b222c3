"""One operation at several sizes, in several element types, on several machines: the rows of `ncuroof model`.

A size on the command line is a number, a list, or a range to sweep.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ncuroof.enums import MemoryLevel, Precision
from ncuroof.errors import ModelError
from ncuroof.model.batch import Residency, critical_batch_of_large_layer, critical_size, grows, residency
from ncuroof.model.catalogue import Model
from ncuroof.model.machines import Machine
from ncuroof.model.network import critical_contraction
from ncuroof.model.operation import Operation, under
from ncuroof.model.prediction import Distance, Prediction, crosses_ridge, distance, predict

MOST_ROWS = 10_000

_BATCH_BY_MODEL = {"linear": "batch", "gemm": "m"}
"""By model, the size whose critical value is computed if no size is swept."""

Values = Mapping[str, "int | str | bool"]

MOST_VALUES = 4096


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """What to evaluate a model for: every combination of sizes, element types and machines is a row.

    Attributes:
        model: model of the operation.
        sizes: one or several values per size.
        options: the other arguments of the model's function.
        dtypes: names of element types.
        machines: the machines.
        precision: roof of matrix products, in place of the element type's.
        link_bytes_per_s: bandwidth between devices.
    """

    model: Model
    sizes: Mapping[str, Sequence[int]]
    options: Values
    dtypes: Sequence[str]
    machines: Sequence[Machine]
    precision: str | None = None
    link_bytes_per_s: float | None = None

    @property
    def swept(self) -> tuple[str, ...]:
        """Names of the sizes with several values."""
        return tuple(name for name, values in self.sizes.items() if len(values) > 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One operation on one machine.

    Attributes:
        sizes: the request's sizes in this row.
        dtype: element type of this row.
        prediction: bounds on its time on the machine.
        residency: how its tensors fit into L2 if they are reused: tile by tile by matrix products, in sweeps by other operations.
    """

    sizes: Mapping[str, int]
    dtype: str
    prediction: Prediction
    residency: Residency


@dataclass(frozen=True, slots=True)
class Critical:
    """The critical size: from which value on an operation is compute-bound on a machine.

    Attributes:
        machine: the machine.
        dtype: element type of the operation.
        size: name of the size.
        value: smallest compute-bound value, with the other sizes as in the first row; None if it does not exist, or is unknown.
        of_large: its limit for large layers, or against the link alone; None without a formula.
        lacks: roof that is missing to compute it, a precision or "dram"; None if the data sheet states both.
    """

    machine: Machine
    dtype: str
    size: str
    value: int | None
    of_large: float | None
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """The results of a request.

    Attributes:
        request: the request.
        rows: one per combination; sizes vary slowest, machines fastest.
        critical: critical sizes per machine and element type; empty if there is no size to vary.
    """

    request: StudyRequest
    rows: tuple[Row, ...]
    critical: tuple[Critical, ...]

    @property
    def crossing(self) -> tuple[tuple[Row, ...], ...]:
        """Groups of rows: operations that are compute-bound on some of the machines and not on others."""
        n = len(self.request.machines)
        groups = [self.rows[start : start + n] for start in range(0, len(self.rows), n)]
        return tuple(group for group in groups if crosses_ridge([row.prediction for row in group]))

    def distance(self, *, achieved_flop_per_s: float | None, achieved_ns: float | None) -> tuple[Distance | None, ...]:
        """Return how far below its roof each row is, for a measured rate or else a measured time."""
        return tuple(_distance(row.prediction, achieved_flop_per_s, achieved_ns) for row in self.rows)


def study(request: StudyRequest) -> Study:
    """Return the results of a request.

    Raises:
        ModelError: sizes or options are invalid, or there are more than `MOST_ROWS` rows.
        UnknownNameError: no such element type or roof.
    """
    n_rows = math.prod(map(len, (request.dtypes, request.machines, *request.sizes.values())))
    if n_rows > MOST_ROWS:
        raise ModelError(f"{n_rows} combinations requested; at most {MOST_ROWS} are allowed", hint="sweep fewer sizes")
    known = {precision.value for precision in Precision} | {
        name for machine in request.machines for name in machine.peak_flop_per_s
    }
    if request.precision is not None and request.precision not in known:
        raise ModelError(
            f"no compute roof is called {request.precision!r}", hint=f"use one of: {', '.join(sorted(known))}"
        )
    rows = []
    for values in itertools.product(*request.sizes.values()):
        sizes = dict(zip(request.sizes, values, strict=True))
        for dtype in request.dtypes:
            operation = _operation(request, sizes, dtype)
            for machine in request.machines:
                prediction = predict(operation, machine, link_bytes_per_s=request.link_bytes_per_s)
                cached = residency(operation.working_set_bytes, machine, is_swept=not operation.matrix_flop)
                rows.append(Row(sizes, dtype, prediction, cached))
    return Study(request, tuple(rows), _criticals(request))


def _operation(request: StudyRequest, sizes: Mapping[str, int], dtype: str) -> Operation:
    operation = request.model.make(**sizes, **request.options, dtype=dtype)
    if operation.network_bytes and request.link_bytes_per_s is None:
        raise ModelError(
            f"{operation.name}: the bandwidth between the devices is missing", hint="give --link-bytes-per-s, e.g. 450G"
        )
    return operation if request.precision is None else under(operation, request.precision)


def _criticals(request: StudyRequest) -> tuple[Critical, ...]:
    """Return the critical values of the swept size, or of a product's batch if no size is swept; empty if `grows` is false."""
    first = {name: values[0] for name, values in request.sizes.items()}
    if request.model.name == "sharded-gemm":
        return _critical_contractions(request, first) if request.options.get("axis", "k") == "k" else ()
    name = request.swept[0] if len(request.swept) == 1 else _BATCH_BY_MODEL.get(request.model.name)
    if name not in request.model.sizes or len(request.swept) > 1:
        return ()
    pairs = itertools.product(request.dtypes, request.machines)
    found = (_critical(request, first, name, dtype, machine) for dtype, machine in pairs)
    return tuple(each for each in found if each is not None)


def _critical(
    request: StudyRequest, first: Mapping[str, int], name: str, dtype: str, machine: Machine
) -> Critical | None:
    """Return the critical value of the size `name`; None if `grows` is false."""

    def predicted(value: int) -> Prediction:
        return predict(_operation(request, {**first, name: value}, dtype), machine)

    if not grows(predicted):
        return None
    smallest = predicted(1)
    of_large = _critical_of_large(request, name, dtype, smallest.ridge_flop_per_byte)
    return Critical(machine, dtype, name, critical_size(predicted), of_large, _lacking_roof(smallest))


def _critical_of_large(request: StudyRequest, name: str, dtype: str, ridge_flop_per_byte: float | None) -> float | None:
    """Return the critical batch of a large layer; None if `name` is no batch, options change the work, or the ridge is unknown."""
    is_plain = set(request.sizes) == set(request.model.sizes) and not request.options.get("backward")
    if ridge_flop_per_byte is None or not is_plain or _BATCH_BY_MODEL.get(request.model.name) != name:
        return None
    weights = str(request.options.get("weight_dtype") or request.options.get("b_dtype") or dtype)
    return critical_batch_of_large_layer(ridge_flop_per_byte, weights)


def _lacking_roof(prediction: Prediction) -> str | None:
    if prediction.bound is not None:
        return None
    return prediction.precision if prediction.peak_flop_per_s is None else MemoryLevel.DRAM.value


def _critical_contractions(request: StudyRequest, first: Mapping[str, int]) -> tuple[Critical, ...]:
    devices = int(request.options.get("devices", 2))
    found = []
    for dtype, machine in itertools.product(request.dtypes, request.machines):
        peak = predict(_operation(request, first, dtype), machine).peak_flop_per_s
        sent = str(request.options.get("c_dtype") or dtype)
        if peak is not None and request.link_bytes_per_s is not None:
            size = critical_contraction(peak, request.link_bytes_per_s, devices=devices, dtype=sent)
            found.append(Critical(machine, dtype, "k", None, size))
    return tuple(found)


def _distance(prediction: Prediction, achieved_flop_per_s: float | None, achieved_ns: float | None) -> Distance | None:
    if achieved_flop_per_s is None and achieved_ns:
        achieved_flop_per_s = prediction.operation.flop / achieved_ns * 1e9
    if achieved_flop_per_s is None or prediction.attainable_flop_per_s is None:
        return None
    return distance(prediction.attainable_flop_per_s, achieved_flop_per_s)


def sizes_of(text: str) -> tuple[int, ...]:
    """Parse sizes, in their order.

    "4096" is one size, "1,8,32" a list; "1:4096" doubles from the first and ends with the last; "256:4096:256" goes in steps.

    Raises:
        ModelError: the text is malformed, or means more than `MOST_VALUES` sizes.
    """
    try:
        if "," in text:
            return tuple(map(_whole, text.split(",")))
        parts = [_whole(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if len(parts) == 1:
        return (parts[0],)
    if not 2 <= len(parts) <= 3 or not 1 <= parts[0] <= parts[1] or parts[-1] < 1:
        raise ModelError(
            f"{text!r} is not a size", hint="write 4096, 1,8,32, 1:4096 (doubling) or 256:4096:256 (in steps)"
        )
    first, last = parts[:2]
    values = _doubling(first, last) if len(parts) == 2 else range(first, last + 1, parts[2])
    if len(values) > MOST_VALUES:
        raise ModelError(
            f"{text!r} means {len(values)} sizes; at most {MOST_VALUES} are allowed", hint="use larger steps"
        )
    return tuple(values)


def _doubling(first: int, last: int) -> list[int]:
    values = [first]
    while values[-1] * 2 < last:
        values.append(values[-1] * 2)
    return values if last == first else [*values, last]


def _whole(text: str) -> int:
    """Return a whole number, written as 4096, 4_096 or 1e9."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)
