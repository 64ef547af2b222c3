"""Each failure of ncu that users meet ends in one clear line and a fix."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.collect.failures import refusal, why_nothing
from ncuroof.collect.ncu_run import NcuExit, run_ncu
from ncuroof.collect.progress import Progress
from ncuroof.ncu.settings import known_failure, load_settings
from tests.support.ncu import find_ncu

FAILURES = load_settings().failures

# As ncu 2024.1.1 words them (texts in its binary), and as users quoted them in public issues.
SAID = {
    "no-permission": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM",  # noqa: E501
    "vgpu-permission": "==ERROR== The user does not have permission to access NVIDIA GPU Performance Counters on the target vGPU device 0.",  # noqa: E501
    "counters-taken": "==ERROR== Profiling failed because a driver resource was unavailable or the user does not have permission to access NVIDIA GPU Performance Counters. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.",  # noqa: E501
    "driver-mismatch": "==ERROR== Cuda driver is not compatible with Nsight Compute.",
    "device-unavailable": "==ERROR== Unknown Error on device 0.",
    "serialised-kernel": "==WARNING== Launching the workload is taking more time than expected. If this continues to hang, terminate the profile.",  # noqa: E501
    "no-driver": "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).",
    "unsupported-gpu": "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.",
    "out-of-memory": "==ERROR== Out of memory.",
    "disk-full": "==ERROR== Failed to save the report to file /data/run.ncu-rep",
    "lock": "==ERROR== Failed to acquire the interprocess lock at /tmp/nsight-compute-lock. Please make sure that this path supports file-based locking. (13)",  # noqa: E501
    "unknown-metric": "==ERROR== Failed to find metric lts__t_sectors_srcunit_foo.sum",
    "unknown-section": "==ERROR== Option '--section Nope' did not match any section.",
    "unknown-option": "==ERROR== unrecognised option '--nosuch'. Use --help for further details.",
    "program-not-found": "==ERROR== '/nonexist' does not exist or is not an executable. Please make sure to specify the absolute path",  # noqa: E501
    "report-exists": "==ERROR== File run.ncu-rep already exists. Use '-f' for overwriting the file.",
    "replay-failed": '==ERROR== Failed to profile "kernel_1" in process 4711',
    "program-never-used-cuda": "==PROF== Target process 36054 terminated before first instrumented API call.",
}  # fmt: skip


NOTHING = "==WARNING== No kernels were profiled."
WARNED = (
    "==WARNING== Please consult the documentation for current range-based replay mode limitations and requirements."
)


def ended(*messages: str, status: int = 0, exit_status: int | None = None, is_connected: bool = False) -> NcuExit:
    said = Progress(messages=messages, exit_status=exit_status, is_connected=is_connected)
    return NcuExit(status, said, is_interrupted=False)


@pytest.mark.parametrize("failure", [failure.id for failure in FAILURES])
def test_a_failure_is_recognised_by_the_message_of_ncu(failure: str) -> None:
    found = known_failure([SAID[failure]], FAILURES, has_kernels=False)
    assert found is not None
    assert found.id == failure


def test_an_unknown_error_after_a_kernel_is_one_of_replay() -> None:
    found = known_failure([SAID["device-unavailable"]], FAILURES)
    assert found is not None
    assert found.id == "replay-failed"


def test_each_failure_says_what_to_do_in_one_line() -> None:
    for failure in FAILURES:
        assert failure.hint
        assert "\n" not in failure.message + failure.hint


def test_the_three_fixes_for_permission() -> None:
    hint = str(why_nothing(ended(SAID["no-permission"]), FAILURES, is_filtered=False).hint)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in hint
    assert "--cap-add=SYS_ADMIN" in hint
    assert "Slurm" in hint


def test_the_root_cause_comes_before_its_consequences() -> None:
    messages = [SAID["replay-failed"], SAID["no-permission"], "==WARNING== No kernels were profiled."]
    assert known_failure(messages, FAILURES).id == "no-permission"  # type: ignore[union-attr]


def test_a_failed_program_is_named_as_the_cause() -> None:
    error = why_nothing(ended(NOTHING, exit_status=3), FAILURES, is_filtered=False)
    assert str(error) == "the program exited with status 3 before a kernel was recorded (target-failed)"


@pytest.mark.parametrize(
    ("is_filtered", "hint"),
    [(True, "--dry-run"), (True, "all Kokkos or RAJA kernels share"), (False, "it launched none")],
)
def test_no_kernels(is_filtered: bool, hint: str) -> None:
    error = why_nothing(ended(NOTHING, is_connected=True), FAILURES, is_filtered=is_filtered)
    assert str(error) == "the program used CUDA, but no kernel was recorded (no-kernels)"
    assert hint in str(error.hint)


def test_a_program_is_said_to_have_used_cuda_only_if_ncu_says_so() -> None:
    assert str(why_nothing(ended(NOTHING), FAILURES, is_filtered=True)).startswith("ncu saw no process that uses CUDA")
    error = why_nothing(ended(status=127), FAILURES, is_filtered=False, has_ranks=True)
    assert str(error) == "the launcher exited with status 127 before any program used CUDA"


def test_unknown_messages_are_passed_on() -> None:
    error = why_nothing(ended("==ERROR== The moon is in the way."), FAILURES, is_filtered=False)
    assert str(error) == "ncu recorded nothing: The moon is in the way."


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([WARNED, "==ERROR== The moon is in the way."], "ncu recorded nothing: The moon is in the way."),
        ([WARNED, "==ERROR== Out of memory."], "(out-of-memory)"),
        (["==WARNING== Invalid value", "==ERROR== The moon is in the way."], "The moon is in the way."),
        (["==WARNING== Invalid value", NOTHING], "(unknown-option)"),
        ([NOTHING.replace("kernels", "ranges")], "ncu saw no process that uses CUDA"),
        ([NOTHING.replace("kernels", "graphs")], "ncu saw no process that uses CUDA"),
    ],
)
def test_errors_are_the_reason_and_not_the_warnings_before_them(said: list[str], message: str) -> None:
    assert message in str(why_nothing(ended(*said), FAILURES, is_filtered=False))


def test_a_message_that_was_not_printed_is_not_said_to_be_above() -> None:
    error = refusal("==ERROR== The moon is in the way.", FAILURES)
    assert error is not None
    assert "above" not in str(error.hint)


def test_an_ignored_failure_is_not_a_refusal() -> None:
    said = "==ERROR== The application terminated before first instrumented API call."
    assert "(program-never-used-cuda)" in str(refusal(said, FAILURES))
    assert refusal(said, FAILURES, ["program-never-used-cuda"]) is None
    assert refusal("==ERROR== Out of memory.", FAILURES, ["program-never-used-cuda"]) is not None


@pytest.mark.oracle
def test_the_failure_of_the_real_ncu_without_a_driver_is_recognised(capfd: pytest.CaptureFixture[str]) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    outcome = run_ncu(
        lambda log: [
            str(ncu),
            "--log-file",
            str(log),
            "--section",
            "SpeedOfLight",
            sys.executable,
            "-c",
            "print('hello')",
        ],
        shows_progress=False,
    )
    found = known_failure(outcome.progress.messages, FAILURES)
    assert found is not None, outcome
    assert found.id == "no-driver"
    capfd.readouterr()


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("words", "failure"),
    [
        (("-k", "a", "-k", "b", "/bin/true"), "unknown-option"),
        (("--clock-control", "boosted", "/bin/true"), "unknown-option"),
        (("-k", "regex:(", "/bin/true"), "unknown-option"),
        (("--kill", "yes", "/bin/true"), "unknown-option"),
        (("./no-such-program",), "program-not-found"),
    ],
)
def test_messages_of_the_real_ncu_before_its_log_are_read(
    capfd: pytest.CaptureFixture[str], words: tuple[str, ...], failure: str
) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    outcome = run_ncu(lambda log: [str(ncu), "--log-file", str(log), *words], shows_progress=False)
    assert f"({failure})" in str(why_nothing(outcome, FAILURES, is_filtered=False))
    assert capfd.readouterr().out.startswith("==ERROR== ")


@pytest.mark.oracle
def test_the_real_ncu_takes_our_command_line(tmp_path: Path) -> None:
    """Past its own checks of options, names of sections and regular expressions; it fails only where it looks for the driver."""
    from ncuroof.collect.arguments import ncu_command  # noqa: PLC0415
    from ncuroof.collect.plan import plan_collection  # noqa: PLC0415
    from ncuroof.collect.programs import Program  # noqa: PLC0415
    from ncuroof.collect.request import Steps  # noqa: PLC0415
    from tests.collect.making import request  # noqa: PLC0415

    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    settings = load_settings()
    asked = request(
        kernels=("gemm",),
        nvtx=("step/",),
        steps=Steps(1, 2),
        skip=1,
        count=2,
        per_shape=True,
        report=tmp_path / "r.ncu-rep",
    )
    plan = plan_collection("roofline", settings, capabilities=[90])
    command = ncu_command(asked, plan, Program((), ("/bin/true",), None, None), settings, ncu=str(ncu))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "option" not in done.stdout + done.stderr
    assert "CUDA driver" in done.stdout + done.stderr or "No kernels were profiled" in done.stdout
