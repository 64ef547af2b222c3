"""What an operation asks of a machine: work under one roof or several, and bytes that have to move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ncuroof.errors import ModelError
from ncuroof.model.dtypes import Dtype
from ncuroof.resources import Stated


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic of one kind.

    Attributes:
        flop: additions, multiplications, divisions, comparisons and special functions, 1 each; a fused multiply-add is 2.
        precisions: roofs that it may run under; the first that a machine has counts.
        is_product: of matrix products, which tensor cores can make.
        is_recomputed: done a second time, for want of what the first time did not keep.
    """

    flop: float
    precisions: tuple[str, ...]
    is_product: bool = False
    is_recomputed: bool = False


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that moves between memory and chip.

    Attributes:
        tensor: which one, e.g. "weights".
        bytes: that move, all times together.
        is_written: written; else read.
        times: how often the tensor moves.
    """

    tensor: str
    bytes: float
    is_written: bool = False
    times: float = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """What one operation asks of a machine, before there is any code.

    Attributes:
        name: of the model, e.g. "gemm", or of an operator, e.g. "aten::mm".
        sizes: what the caller gave, by name.
        work: by kind.
        traffic: device memory, tensor by tensor.
        counted: which traffic that is, in words.
        l2_bytes: what the SMs read from L2, where the model has tiles; None where it does not say. Writes go the other way, on
            wires of their own, as in the roof traffic of reports.
        network_bytes: that each device sends to others.
        is_known: False where the work of an operator is not known; its traffic is.
    """

    name: str
    sizes: Mapping[str, object] = field(hash=False)
    work: tuple[Work, ...]
    traffic: tuple[Traffic, ...]
    counted: str
    l2_bytes: float | None = None
    network_bytes: float = 0.0
    is_known: bool = True

    @property
    def flop(self) -> float:
        """All work together; of no meaning where `is_known` is False."""
        return sum(each.flop for each in self.work)

    @property
    def matrix_flop(self) -> float:
        """Work of matrix products."""
        return sum(each.flop for each in self.work if each.is_product)

    @property
    def needed_matrix_flop(self) -> float:
        """Work of matrix products without those that are made a second time."""
        return sum(each.flop for each in self.work if each.is_product and not each.is_recomputed)

    @property
    def read_bytes(self) -> float:
        """Read from device memory."""
        return sum(each.bytes for each in self.traffic if not each.is_written)

    @property
    def written_bytes(self) -> float:
        """Written to device memory."""
        return sum(each.bytes for each in self.traffic if each.is_written)

    @property
    def bytes(self) -> float:
        """Both directions of device memory."""
        return self.read_bytes + self.written_bytes

    @property
    def working_set_bytes(self) -> float:
        """All tensors, each once, whether it is read, written, or both, and however often."""
        size_by_tensor: dict[str, float] = {}
        for each in self.traffic:
            size_by_tensor[each.tensor] = max(size_by_tensor.get(each.tensor, 0.0), each.bytes / each.times)
        return sum(size_by_tensor.values())

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Work per byte of device memory; None where nothing moves, or the work is not known."""
        return self.flop / self.bytes if self.bytes and self.is_known else None

    @property
    def l2_intensity_flop_per_byte(self) -> float | None:
        """Work per byte that the SMs read from L2; None where the model has no tiles."""
        return self.flop / self.l2_bytes if self.l2_bytes else None

    @property
    def l2_hit_frac(self) -> float | None:
        """Share of the SMs' reads that L2 has to hold for device memory to move no more than is counted; None without tiles."""
        return 1 - self.read_bytes / self.l2_bytes if self.l2_bytes else None


EACH_ONCE = "each tensor once (compulsory traffic), all reuse on the chip"


def made(
    name: str,
    sizes: Mapping[str, object],
    work: Sequence[Work],
    traffic: Sequence[Traffic],
    *,
    counted: str = EACH_ONCE,
    l2_bytes: float | None = None,
) -> Operation:
    """Return an operation without the kinds of work that are zero and without sizes that were not given.

    Args:
        name: of the operation.
        sizes: by name; numbers have to be whole and positive.
        work: by kind.
        traffic: tensor by tensor.
        counted: which traffic that is.
        l2_bytes: what the SMs read from L2, where it is known.

    Raises:
        ModelError: a size is not a positive whole number.
    """
    for size, value in sizes.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and (value < 1 or value % 1 != 0):
            raise ModelError(
                f"{name}: {size} must be a whole number of at least 1, found {value}",
                hint=f"ncuroof model {name} --help",
            )
    given = {size: value for size, value in sizes.items() if value is not None and value is not False}
    return Operation(
        name=name,
        sizes=Stated(given),
        work=tuple(each for each in work if each.flop),
        traffic=tuple(each for each in traffic if each.bytes),
        counted=counted,
        l2_bytes=l2_bytes,
    )


def matrix(flop: float, dtype: Dtype, *, is_recomputed: bool = False) -> Work:
    """Return work of matrix products made in `dtype`.

    Raises:
        ModelError: no product is made in it.
    """
    if not dtype.matrix:
        raise ModelError(
            f"there are no matrix products in {dtype.name}", hint="choose a floating-point type, int8 or int4"
        )
    return Work(flop, dtype.matrix, is_product=True, is_recomputed=is_recomputed)


def vector(flop: float, dtype: Dtype) -> Work:
    """Return any other work on elements of `dtype`."""
    return Work(flop, dtype.vector)


def read(tensor: str, n_elements: float, dtype: Dtype, *, times: float = 1) -> Traffic:
    """Return a tensor that is read, once or several times."""
    return Traffic(tensor, times * n_elements * dtype.bytes, times=times)


def written(tensor: str, n_elements: float, dtype: Dtype, *, times: float = 1) -> Traffic:
    """Return a tensor that is written, once or several times."""
    return Traffic(tensor, times * n_elements * dtype.bytes, is_written=True, times=times)


def under(operation: Operation, precision: str) -> Operation:
    """Return the operation with its matrix products under the roof called `precision`, e.g. "fp32" without tensor cores."""
    work = tuple(replace(each, precisions=(precision,)) if each.is_product else each for each in operation.work)
    return replace(operation, work=work)
