"""Models of operations: work, bytes and the roofline of an operation before any code is written.

    >>> from ncuroof import model
    >>> product = model.gemm(4096, 4096, 4096, dtype="bf16")
    >>> product.intensity_flop_per_byte                                      # 1365.3
    >>> model.predict(product, "h100-sxm").bound                              # "compute"

`operator` returns the operation of a PyTorch operator from its name, shapes and element types; `recorded_operator` does so from an
NVTX range of PyTorch.
"""

from ncuroof.model.attention_products import attention
from ncuroof.model.batch import Residency, critical_batch_of_large_layer, critical_size, residency
from ncuroof.model.catalogue import Model, Parameter, model_by_name, models
from ncuroof.model.dtypes import DTYPES, Dtype, dtype_of
from ncuroof.model.machines import Accelerator, Machine, accelerators, machine_by_name, machine_of, with_measured
from ncuroof.model.network import critical_contraction, sharded_gemm
from ncuroof.model.operation import Operation, TensorShape, Traffic, Work, under
from ncuroof.model.operators import operator, recorded_operator
from ncuroof.model.per_element import activation, adamw, custom, elementwise, embedding, rope
from ncuroof.model.per_row import cross_entropy, layernorm, rmsnorm, softmax
from ncuroof.model.prediction import (
    Distance,
    Grade,
    Prediction,
    attainable_flop_per_s,
    crosses_ridge,
    distance,
    predict,
)
from ncuroof.model.products import bmm, dot, gemm, gemv, linear

__all__ = [
    "DTYPES",
    "Accelerator",
    "Distance",
    "Dtype",
    "Grade",
    "Machine",
    "Model",
    "Operation",
    "Parameter",
    "Prediction",
    "Residency",
    "TensorShape",
    "Traffic",
    "Work",
    "accelerators",
    "activation",
    "adamw",
    "attainable_flop_per_s",
    "attention",
    "bmm",
    "critical_batch_of_large_layer",
    "critical_contraction",
    "critical_size",
    "cross_entropy",
    "crosses_ridge",
    "custom",
    "distance",
    "dot",
    "dtype_of",
    "elementwise",
    "embedding",
    "gemm",
    "gemv",
    "layernorm",
    "linear",
    "machine_by_name",
    "machine_of",
    "model_by_name",
    "models",
    "operator",
    "predict",
    "recorded_operator",
    "residency",
    "rmsnorm",
    "rope",
    "sharded_gemm",
    "softmax",
    "under",
    "with_measured",
]
