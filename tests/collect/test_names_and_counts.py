"""Kernels counted by PyTorch's profiler and recorded by ncu are recognised as the same; counts travel beside the report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ncuroof.errors import CountsError
from ncuroof.ncu.kernel_names import function_name, same_kernel_key
from ncuroof.sidecars.counts import (
    Counts,
    KernelCount,
    count_launches,
    counts_json,
    counts_path,
    covering,
    functions_of,
    read_counts,
    together,
)
from ncuroof.sidecars.traces.read import read_trace
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown
from ncuroof.sidecars.traces.timeline import Activity, Timeline
from ncuroof.sidecars.traces.torch_profiler import timeline_of

TRACES = Path(__file__).with_name("traces")

GNU_AND_NVIDIA = [
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",  # noqa: E501
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2, T3)",  # noqa: E501
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float, 10, true, false>(float*, int)",
        "void <unnamed>::softmax_warp_forward<c10::BFloat16, float, (int)10, (bool)1, (bool)0>(T2 *, int)",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_64x4_nn_align8>(cutlass_80_tensorop_s16816gemm_bf16_128x64_64x4_nn_align8::Params)",  # noqa: E501
        "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_64x4_nn_align8>(T1::Params)",
    ),
    (  # a lambda within a template: NVIDIA's tells what it returns, and writes T1 for its parameters; of PyTorch 2.11 on an H100
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<c10::BFloat16> const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<c10::BFloat16> const&)::{lambda(int)#1})",  # noqa: E501
        "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",  # noqa: E501
    ),
    ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ("scale(float*, int)", "scale(float *, int)"),
]


@pytest.mark.parametrize(("gnu", "nvidia"), GNU_AND_NVIDIA)
def test_two_spellings_are_one_kernel(gnu: str, nvidia: str) -> None:
    assert same_kernel_key(gnu) == same_kernel_key(nvidia)
    assert function_name(gnu) == function_name(nvidia)


def test_a_different_template_argument_makes_a_different_kernel() -> None:
    assert same_kernel_key("void k<4, float>(int)") != same_kernel_key("void k<8, float>(int)")
    assert same_kernel_key("void k<Add<float> >(int)") != same_kernel_key("void k<Mul<float> >(int)")
    assert same_kernel_key("k<f<int>(T1)::[lambda(int) (instance 1)]>") != same_kernel_key(
        "k<f<int>(T1)::[lambda(int) (instance 2)]>"
    )
    assert same_kernel_key("k<f<int>(T1)::[lambda(int) (instance 1)]>") != same_kernel_key(
        "k<f<char>(T1)::[lambda(int) (instance 1)]>"
    )
    assert same_kernel_key("void k<-1>(int)") != same_kernel_key("void k<1>(int)")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void at::native::copy_kernel<float, 4>(int, float*)", "copy_kernel"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"),  # noqa: E501
        ("void (anonymous namespace)::k<a::b<c> >(d)", "k"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(float*)", "kernel"),
        ("_Z3foov", "foo"),
        ("_ZN7cutlass6KernelINS_4gemm6kernel4GemmIfEEEEvNT_6ParamsE", "Kernel"),
        ("_ZN2at6native12_GLOBAL__N_120softmax_warp_forwardIfLi4EEEvPT_i", "softmax_warp_forward"),
        ("_ZN3stdL5applyEPf", "apply"),
        ("_ZN6cudapy8__main__6matmulB2v1B6cw51cXE5ArrayIfLi2EE", "matmul"),  # Numba's, with marks of the version
        ("_Z18affineUpdateKernel14_learnParams_t12AffineInputs", "affineUpdateKernel"),  # its parameters follow at once
        ("_Z", "_Z"),
        ("_Zap", "_Zap"),
        (f"_Z{'9' * 5000}", f"_Z{'9' * 5000}"[7:]),  # no name, and no number that is read
        ("", ""),
    ],
)  # fmt: skip
def test_function_names(name: str, function: str) -> None:
    assert function_name(name) == function


@pytest.mark.corpus
def test_names_of_real_kernels_agree_with_the_compilers_demangler(corpus: list[Path]) -> None:
    """Reports hold each kernel's name as ncu demangles it and mangled: c++filt gives the compiler's spelling of the same."""
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    small = [str(path) for path in corpus if path.stat().st_size < 12 * 2**20]
    listed = subprocess.run([sys.executable, "-c", NAMES, *small], capture_output=True, text=True, check=True).stdout
    names = sorted({(mangled, nvidia) for mangled, nvidia in json.loads(listed)})
    mangled = "\n".join(pair[0] for pair in names)
    spelled = subprocess.run(["c++filt"], input=mangled, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = [(gnu, nvidia) for gnu, (mangled_name, nvidia) in zip(spelled, names, strict=True) if gnu != mangled_name]
    assert len(pairs) > 100
    wrong = [pair for pair in pairs if same_kernel_key(pair[0]) != same_kernel_key(pair[1])]
    # A kernel whose key is not found counts for itself, and the report says so.
    assert len(wrong) <= 0.02 * len(pairs), wrong[:5]
    assert [pair for pair in pairs if function_name(pair[0]) != function_name(pair[1])] == []
    mangled_and_nvidia = [pair for pair in names if pair[0].startswith("_Z")]
    assert len(mangled_and_nvidia) > 100
    assert [pair for pair in mangled_and_nvidia if function_name(pair[0]) != function_name(pair[1])] == []


# NVIDIA's module, in a process of its own, gives both names of every kernel.
NAMES = """
import json, sys
import ncu_report
pairs = set()
for path in sys.argv[1:]:
    context = ncu_report.load_report(path)
    for number in range(context.num_ranges()):
        found = context.range_by_idx(number)
        for place in range(found.num_actions()):
            action = found.action_by_idx(place)
            pairs.add((action.name(action.NameBase_MANGLED), action.name(action.NameBase_DEMANGLED)))
print(json.dumps(sorted(pairs)))
"""


# ---- counting ---------------------------------------------------------------------------------------------------------------


def event(name: str, us: float, grid: tuple[int, int, int] = (1, 1, 1), cat: str = "kernel") -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "ts": 0, "dur": us, "args": {"grid": list(grid), "block": [32, 1, 1]}}


BREAKDOWN = TemporalBreakdown(
    (Part("computation", 80_000.0), Part("host_wait", 20_000.0, 7)), CountedSteps(2, 100_000.0, 0.0, 45_000.0)
)
TRACE = [
    event("gemm", 30.0, (8, 1, 1)),
    event("gemm", 34.0, (8, 1, 1)),
    event("gemm", 10.0, (2, 1, 1)),
    event("relu", 6.0),
    event("aten::mm", 99.0, cat="cpu_op"),
    {"ph": "M", "name": "process_name"},
]


COUNTED = count_launches(timeline_of(TRACE), source="torch.profiler")


def test_launches_are_counted_by_kernel_and_shape() -> None:
    counts = COUNTED
    assert counts.kernels == (
        KernelCount("gemm", (8, 1, 1), (32, 1, 1), 2, 64_000.0, 30_000.0, 34_000.0),
        KernelCount("gemm", (2, 1, 1), (32, 1, 1), 1, 10_000.0, 10_000.0, 10_000.0),
        KernelCount("relu", (1, 1, 1), (32, 1, 1), 1, 6_000.0, 6_000.0, 6_000.0),
    )
    assert (counts.n_launches, counts.duration_ns) == (4, 80_000.0)


def test_an_event_without_a_grid_is_a_named_error() -> None:
    with pytest.raises(CountsError, match=r"an event is malformed: kernel k: 'grid' is missing$"):
        timeline_of([{"cat": "kernel", "name": "k", "ts": 0, "dur": 1.0, "args": {}}])


def shapes(name: str, n_shapes: int, n_launches: int, us: float) -> list[KernelCount]:
    """Return a kernel's launches, each shape as often and as long together."""
    return [KernelCount(name, (1 + n, 1, 1), (32, 1, 1), n_launches, us * 1e3) for n in range(n_shapes)]


def test_functions_that_cover_a_share() -> None:
    # gemm 64 + 10 µs in two shapes, relu 6 µs in one: gemm makes up 92.5 %.
    assert covering(COUNTED, 0.5) == covering(COUNTED, 0.92) == ("gemm",)
    assert covering(COUNTED, 0.93) == covering(COUNTED, 1.0) == ("gemm", "relu")
    assert covering(Counts(()), 0.95) == ()


def test_functions_are_chosen_by_their_time_per_launch_to_record() -> None:
    # 40 µs in ten shapes, which all are recorded, 30 and 10 µs in one each: these two are half of 80 µs.
    counts = Counts(
        (*shapes("many", 10, 1, 4.0), *shapes("void one<4>(int)", 1, 6, 30.0), *shapes("other", 1, 1, 10.0))
    )
    assert covering(counts, 0.5) == ("one", "other")
    # Where every launch is recorded, `one` is six launches of 5 µs: still before ten of 4 µs, and after one of 10 µs.
    assert covering(counts, 0.5, once_each=False) == ("other", "one")


def test_functions_that_the_others_can_do_without_are_left_out() -> None:
    # 6 and 5 µs in a shape each, 49 µs in ten: 80 % of 60 µs are 48, for which the last is enough.
    counts = Counts((*shapes("a", 1, 1, 6.0), *shapes("b", 1, 1, 5.0), *shapes("c", 10, 1, 4.9)))
    assert covering(counts, 0.8) == ("c",)
    assert covering(counts, 0.9) == ("a", "c")


@pytest.mark.parametrize(("share", "fewest"), [(0.5, 23), (0.8, 50), (0.95, 69)])
def test_a_share_of_a_real_step_takes_few_launches(share: float, fewest: int) -> None:
    """Of 88 kernels and shapes, the fewest by trying all sums (dynamic programming); before, 63, 69 and 73 were recorded."""
    counts = read_trace(TRACES / "h100-training-step.json.gz")
    chosen = [kernel for kernel in counts.kernels if function_name(kernel.name) in covering(counts, share)]
    assert share <= sum(kernel.duration_ns for kernel in chosen) / counts.duration_ns
    assert fewest <= len(chosen) <= fewest + 2


def test_functions_are_named_once() -> None:
    assert functions_of(COUNTED.kernels) == ("gemm", "relu")


def test_counts_come_back_as_they_were_written(tmp_path: Path) -> None:
    counts = replace(COUNTED, steps="3:4", breakdown=BREAKDOWN)
    path = counts_path(tmp_path / "run.ncu-rep")
    assert path.name == "run.counts.json"
    assert counts_path(tmp_path / "run.ncu-repz") == path
    path.write_bytes(counts_json(counts))
    assert read_counts(path) == counts
    assert json.loads(path.read_bytes())["schema"] == "ncuroof.counts/1"


def ran(name: str, start_ns: float, stream: int | None = 7, *, is_copy: bool = False) -> Activity:
    return Activity(name, start_ns, 5.0, 0, None, None if is_copy else (ONE, ONE), is_copy, stream)


ONE = (1, 1, 1)


def before(kernels: tuple[KernelCount, ...]) -> dict[str, dict[str, int] | None]:
    """Return by kernel how often which one ran right before it."""
    return {
        kernel.name: None
        if kernel.predecessors is None
        else {each.name: each.n_launches for each in kernel.predecessors}
        for kernel in kernels
    }


def test_predecessors_are_those_of_the_stream_and_come_back_as_they_were_written(tmp_path: Path) -> None:
    launches = [ran("b", 10), ran("a", 0), ran("other", 15, 8), ran("b", 20), ran("a", 30), ran("", 40, is_copy=True)]
    counts = count_launches(Timeline([*launches, ran("b", 50), ran("a", 60)], []), source="nsys")
    # a b b a, a copy, b a; beside them one on another stream
    assert before(counts.kernels) == {"a": {"b": 2}, "b": {"a": 1, "b": 1}, "other": {}}
    path = tmp_path / "run.counts.json"
    path.write_bytes(counts_json(counts))
    assert read_counts(path) == counts
    assert before(together([counts, counts]).kernels) == {"a": {"b": 4}, "b": {"a": 2, "b": 2}, "other": {}}
    assert before(counts.renamed({"a": "A"}).kernels) == {"A": {"b": 2}, "b": {"A": 1, "b": 1}, "other": {}}


def test_predecessors_are_unknown_without_streams_or_in_old_counts() -> None:
    counts = count_launches(Timeline([ran("a", 0), ran("b", 10, None)], []), source="nsys")
    assert before(counts.kernels) == {"a": None, "b": None}
    (kernel, *_) = count_launches(Timeline([ran("a", 0), ran("b", 10)], []), source="nsys").kernels
    older = replace(kernel, predecessors=None)
    assert kernel.with_launches_of(older).predecessors is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "ncuroof.counts/2", "kernels": []}',
        b'{"schema": "ncuroof.counts/1"}',
        b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k"}]}',
        b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1], "block": [1, 1, 1], "n_launches": 1, "duration_ns": 1}]}',  # noqa: E501
        b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 0, "duration_ns": 1}]}',  # noqa: E501
        b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 1, "duration_ns": 1e999}]}',  # noqa: E501
        b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 1000000000000000000000, "duration_ns": 1}]}',  # noqa: E501
        *(
            b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 1, %b}]}'  # noqa: E501
            % times
            for times in (
                b'"duration_ns": 1e308',
                b'"duration_ns": 1e-320',
                b'"duration_ns": 9, "shortest_ns": NaN, "longest_ns": 9',
                b'"duration_ns": 9, "shortest_ns": 9, "longest_ns": Infinity',
                b'"duration_ns": 9, "shortest_ns": -5, "longest_ns": 0',
                b'"duration_ns": 9, "shortest_ns": 9, "longest_ns": 8',
                b'"duration_ns": 9, "shortest_ns": 1e-320, "longest_ns": 9',
            )
        ),
        *(
            b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "n_launches": 2, "duration_ns": 9, "predecessors": %b}]}'  # noqa: E501
            % before
            for before in (
                b"3",
                b"[3]",
                b'[{"kernel": 0}]',
                b'[{"kernel": 1, "n_launches": 1}]',
                b'[{"kernel": -1, "n_launches": 1}]',
                b'[{"kernel": 0, "n_launches": 0}]',
                b'[{"kernel": 0, "n_launches": 3}]',
            )
        ),
        b'{"schema": "ncuroof.counts/1", "kernels": 3}',
        b'{"schema": "ncuroof.counts/1", "kernels": [], "breakdown": 3}',
        b'{"schema": "ncuroof.counts/1", "kernels": [], "breakdown": {"parts": [{"name": "memory", "duration_ns": -1, "n_gaps": null}], "steps": null}}',  # noqa: E501
        b'{"schema": "ncuroof.counts/1", "kernels": [], "breakdown": {"parts": [{"name": "memory", "duration_ns": 1, "n_gaps": "many"}], "steps": null}}',  # noqa: E501
        b'{"schema": "ncuroof.counts/1", "kernels": [], "breakdown": {"parts": [], "steps": {"n_steps": 0, "duration_ns": 1, "batches_ns": 1, "earlier_step_ns": null}}}',  # noqa: E501
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_not_counts_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.counts.json"
    path.write_bytes(content)
    with pytest.raises(CountsError):
        read_counts(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": "ncuroof.counts/1"}', "'kernels' is missing"),
        (b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k"}]}', "kernels[0]: 'n_launches' is missing"),
        (
            b'{"schema": "ncuroof.counts/1", "kernels": [{"name": "k", "n_launches": "many", "duration_ns": 1}]}',
            "kernels[0]: expected a number, found 'many'",
        ),
        (
            b'{"schema": "ncuroof.counts/1", "kernels": [{"n_launches": 1, "duration_ns": []}]}',
            "kernels[0]: a value has the wrong type",
        ),
        (
            b'{"schema": "ncuroof.counts/1", "kernels": [{"n_launches": 1, "duration_ns": 1, "grid": [1], "block": [1]}]}',
            "kernels[0]: expected three numbers for a grid or block, found 1",
        ),
    ],
)
def test_damaged_counts_are_named_by_file_and_entry_without_terms_of_python(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "run.counts.json"
    path.write_bytes(content)
    with pytest.raises(CountsError) as caught:
        read_counts(path)
    assert str(caught.value) == f"{path}: the file is damaged: {message}"
