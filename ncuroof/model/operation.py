"""Operations: the shapes of their tensors, the work they need, by roof, and the bytes they have to move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ncuroof.errors import ModelError
from ncuroof.model.dtypes import Dtype, dtype_of
from ncuroof.resources import FrozenMapping


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic of one kind.

    Attributes:
        flop: additions, multiplications, divisions, comparisons and special functions count 1 each, a fused multiply-add 2.
        precisions: roofs that it can run under, the preferred one first; the first that a machine has applies.
        is_product: work of matrix products, which can run on tensor cores.
        is_recomputed: repeated because the result of the first time was not kept.
    """

    flop: float
    precisions: tuple[str, ...]
    is_product: bool = False
    is_recomputed: bool = False


@dataclass(frozen=True, slots=True)
class Traffic:
    """A tensor that moves between memory and chip.

    Attributes:
        tensor: its name, e.g. "weights".
        bytes: total bytes moved, over all times.
        is_written: whether it is written, not read.
        times: how often it moves.
    """

    tensor: str
    bytes: float
    is_written: bool = False
    times: float = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """The work and traffic of one operation, before any code is written.

    Attributes:
        name: name of the model, e.g. "gemm", or of an operator, e.g. "aten::mm".
        sizes: the arguments given by the caller, by name.
        work: work by kind.
        traffic: device-memory traffic by tensor.
        counted: what the traffic includes, in words.
        l2_bytes: bytes that the SMs read from L2, if the model has tiles; else None. Writes are not included: they use separate
            wires, as in the roof traffic of reports.
        network_bytes: bytes that each device sends to others.
        is_known: False if the work of an operator is unknown; its traffic still is known.
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
        """Total work; meaningless if `is_known` is False."""
        return sum(each.flop for each in self.work)

    @property
    def matrix_flop(self) -> float:
        """Work of all matrix products."""
        return sum(each.flop for each in self.work if each.is_product)

    @property
    def needed_matrix_flop(self) -> float:
        """Work of matrix products without recomputed ones."""
        return sum(each.flop for each in self.work if each.is_product and not each.is_recomputed)

    @property
    def read_bytes(self) -> float:
        """Bytes read from device memory."""
        return sum(each.bytes for each in self.traffic if not each.is_written)

    @property
    def written_bytes(self) -> float:
        """Bytes written to device memory."""
        return sum(each.bytes for each in self.traffic if each.is_written)

    @property
    def bytes(self) -> float:
        """Device-memory traffic, both directions."""
        return self.read_bytes + self.written_bytes

    @property
    def working_set_bytes(self) -> float:
        """Total size of all tensors, each counted once however often it is read or written."""
        size_by_tensor: dict[str, float] = {}
        for each in self.traffic:
            size_by_tensor[each.tensor] = max(size_by_tensor.get(each.tensor, 0.0), each.bytes / each.times)
        return sum(size_by_tensor.values())

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Work per byte of device-memory traffic; None if nothing moves, or the work is unknown."""
        return self.flop / self.bytes if self.bytes and self.is_known else None

    @property
    def l2_intensity_flop_per_byte(self) -> float | None:
        """Work per byte that the SMs read from L2; None if the model has no tiles."""
        return self.flop / self.l2_bytes if self.l2_bytes else None

    @property
    def l2_hit_frac(self) -> float | None:
        """Hit rate of the SMs' reads in L2 that the counted device-memory reads require; None if the model has no tiles."""
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
    """Return an operation; work and traffic of zero, and sizes that are None or False, are left out.

    Args:
        name: name of the operation.
        sizes: arguments by name; numbers must be whole and positive.
        work: work by kind.
        traffic: traffic by tensor.
        counted: what the traffic includes, in words.
        l2_bytes: bytes that the SMs read from L2, if known.

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
        sizes=FrozenMapping(given),
        work=tuple(each for each in work if each.flop),
        traffic=tuple(each for each in traffic if each.bytes),
        counted=counted,
        l2_bytes=l2_bytes,
    )


def matrix(flop: float, dtype: Dtype, *, is_recomputed: bool = False) -> Work:
    """Return work of matrix products in `dtype`.

    Raises:
        ModelError: there are no matrix products in that type.
    """
    if not dtype.matrix:
        raise ModelError(
            f"there are no matrix products in {dtype.name}", hint="choose a floating-point type, int8 or int4"
        )
    return Work(flop, dtype.matrix, is_product=True, is_recomputed=is_recomputed)


def vector(flop: float, dtype: Dtype) -> Work:
    """Return work other than matrix products, on elements of `dtype`."""
    return Work(flop, dtype.vector)


def read(tensor: str, n_elements: float, dtype: Dtype, *, times: float = 1) -> Traffic:
    """Return the traffic of a tensor that is read, once or several times."""
    return Traffic(tensor, times * n_elements * dtype.bytes, times=times)


def written(tensor: str, n_elements: float, dtype: Dtype, *, times: float = 1) -> Traffic:
    """Return the traffic of a tensor that is written, once or several times."""
    return Traffic(tensor, times * n_elements * dtype.bytes, is_written=True, times=times)


def under(operation: Operation, precision: str) -> Operation:
    """Return the operation with its matrix products under the roof `precision`, e.g. "fp32" for a kernel without tensor cores."""
    work = tuple(replace(each, precisions=(precision,)) if each.is_product else each for each in operation.work)
    return replace(operation, work=work)


@dataclass(frozen=True, slots=True)
class TensorShape:
    """The shape and element type of a tensor.

    Attributes:
        sizes: sizes of the dimensions; empty for a 0-d tensor.
        dtype: name of the element type, ncuroof's or PyTorch's.
        n_stored: elements in memory, fewer than the product of the sizes if a dimension is expanded; None if equal to it.
    """

    sizes: tuple[int, ...]
    dtype: str = "fp32"
    n_stored: int | None = None

    @property
    def n_elements(self) -> int:
        """Product of the sizes."""
        return math.prod(self.sizes)

    @property
    def bytes(self) -> float:
        """Size in memory."""
        return (self.n_elements if self.n_stored is None else self.n_stored) * dtype_of(self.dtype).bytes

    @property
    def is_floating(self) -> bool:
        """Whether the elements are floating-point or complex, so that arithmetic on them counts as FLOP."""
        return dtype_of(self.dtype).name.startswith(("fp", "bf", "tf", "mxfp", "nvfp", "complex"))
