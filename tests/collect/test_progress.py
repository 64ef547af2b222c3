"""ncu's lines as progress, and the line at the foot of the terminal."""

from __future__ import annotations

from ncuroof.collect.progress import Progress, ProgressReader, StatusLine, clock, progress_text

# Lines of public logs: 2021, 2024, and one with the number of launches to come.
LOG = """==PROF== Connected to process 367502 (/usr/bin/python3.10)
==PROF== Profiling "ampere_fp16_s1688gemm_fp16_12..." - 3: 0%....50%....100% - 8 passes
==PROF== Profiling "add_kernel": 0%....50%....100% - 18 passes
==PROF== Profiling "vecAdd" - 0 (2/5): 0%....50%....100% - 1 pass
==WARNING== Launching the workload is taking more time than expected.
==PROF== Disconnected from process 367502
==PROF== Report: /home/user/run 1.ncu-rep
"""


def test_lines_of_every_version_count() -> None:
    state = ProgressReader().read(LOG)
    assert state == Progress(
        kernel="vecAdd",
        n_done=3,
        n_all=5,
        percent=100,
        passes=1,
        reports=("/home/user/run 1.ncu-rep",),
        is_connected=True,
        messages=("==WARNING== Launching the workload is taking more time than expected.",),
    )


def test_a_line_is_read_while_it_grows() -> None:
    reader = ProgressReader()
    seen = []
    for piece in ("==PROF== Prof", 'iling "gemm" - 0: 0%', "....50", "%..", "..100%", " - 23 passes\n"):
        state = reader.read(piece)
        seen.append((state.kernel, state.percent, state.n_done))
    assert seen == [(None, 0, 0), ("gemm", 0, 0), ("gemm", 0, 0), ("gemm", 50, 0), ("gemm", 100, 0), ("gemm", 100, 1)]


def test_any_cut_of_the_log_gives_the_same() -> None:
    whole = ProgressReader()
    whole.read(LOG)
    by_letter = ProgressReader()
    for letter in LOG:
        by_letter.read(letter)
    assert by_letter.end() == whole.end()


def test_the_status_of_the_program_is_read_from_an_unfinished_line() -> None:
    reader = ProgressReader()
    reader.read("==PROF== Connected to process 7\n==ERROR== The application returned an error code (3).")
    assert (reader.state.exit_status, reader.end().exit_status) == (None, 3)


def test_a_kernel_named_as_a_line_of_ncu_is_not_taken_for_one() -> None:
    state = ProgressReader().read('==PROF== Profiling "x: 100% - 9 passes" - 0: 0%\n')
    assert (state.kernel, state.n_done) == ("x: 100% - 9 passes", 0)


def test_the_remaining_time_is_shown_if_it_is_known() -> None:
    state = Progress(kernel="gemm", n_done=4, percent=50, passes=23)
    # 20 s for 4 launches are 5 s each; 6 are left.
    assert (
        progress_text(state, 20.0, n_all=10)
        == "profiling 4 of 10 launches · gemm 50 % · 23 passes · 0:20 · about 0:30 left"
    )
    assert progress_text(state, 20.0) == "profiling 4 launches · gemm 50 % · 23 passes · 0:20"
    assert progress_text(Progress(), 0.2) == "profiling 0 launches · 0:00"


def test_times() -> None:
    assert [clock(seconds) for seconds in (0.4, 59.6, 3600, 3725)] == ["0:00", "1:00", "1:00:00", "1:02:05"]


def test_a_kernels_name_cannot_act_on_the_terminal() -> None:
    assert "\x1b" not in progress_text(Progress(kernel="a\x1b[2Jb", n_done=1), 1.0)


def test_the_progress_line_gives_way_to_output_of_the_program() -> None:
    screen: list[bytes] = []
    line = StatusLine(screen.append, 40)
    line.show("one")
    line.between(b"epoch 1\n", screen.append)
    assert b"".join(screen) == b"\r\x1b[2Kone" + b"\r\x1b[2K" + b"epoch 1\n" + b"\r\x1b[2Kone"


def test_the_progress_line_does_not_interrupt_an_unfinished_line() -> None:
    screen: list[bytes] = []
    line = StatusLine(screen.append, 40)
    line.between(b"loss: ", screen.append)
    line.show("one")
    line.between(b"0.1\n", screen.append)
    assert b"".join(screen) == b"loss: 0.1\n\r\x1b[2Kone"


def test_the_progress_line_follows_a_progress_bar_that_stands_still() -> None:
    """As tqdm draws it: no line of its ends before the last."""
    screen: list[bytes] = []
    clock_s = {"now": 0.0}
    line = StatusLine(screen.append, 40, now_s=lambda: clock_s["now"])
    line.between(b"\r 10%|#", screen.append)
    clock_s["now"] = 1.9
    line.show("one")
    assert screen == [b"\r 10%|#"]
    clock_s["now"] = 2.1
    line.show("two")
    line.between(b"\r 20%|##", screen.append)
    assert b"".join(screen) == b"\r 10%|#\n\r\x1b[2Ktwo\r\x1b[2K\r 20%|##"
    line.end()
    line.end()
    assert screen[-1] == b"\n"
    assert screen[-2] == b"\r 20%|##"


def test_the_progress_line_is_no_wider_than_the_terminal() -> None:
    screen: list[bytes] = []
    StatusLine(screen.append, 10).show("x" * 50)
    assert screen == [b"\r\x1b[2K" + b"x" * 9]
