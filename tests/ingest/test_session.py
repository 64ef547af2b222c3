from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof.ingest.framing import walk
from ncuroof.ingest.session import Device, Process, Session, read_session
from tests.support import report_writer
from tests.support.report_writer import Float32, Kernel, write_report
from tests.support.wire_encoder import integer, message, text

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
NOTHING = Session(
    ncu_version=None,
    cuda_version=None,
    driver_version=None,
    command_line=None,
    clock_control=None,
    cache_control=None,
    replay_mode=None,
    sets=(),
    sections=(),
    processes=(),
    devices=(),
)


def _read(written: report_writer.Session) -> Session:
    kernel = Kernel("k", process_id=written.processes[0][0])
    return read_session(block.header for block in walk(write_report([kernel], written)).blocks)


def _read_line(command_line: str) -> Session:
    return _read(report_writer.Session(command_line=command_line))


def test_versions_are_those_of_their_providers() -> None:
    session = _read(report_writer.Session(ncu_version="2024.1.1", cuda_version="12.4", driver_version="550.54"))
    # The writer stores ncu's version as ncu does: "2024.1.1.0 (build 1) (public-release)".
    assert (session.ncu_version, session.cuda_version, session.driver_version) == (
        "2024.1.1",
        "12.4",
        "550.54",
    )


def test_empty_headers_give_an_empty_session() -> None:
    assert read_session([b"", integer(1, 0)]) == NOTHING


def test_devices_keep_the_types_of_their_attributes() -> None:
    attributes: dict[str, int | float | str] = {
        "device__attribute_l2s_count": 80,
        "device__attribute_display_name": "A GPU",
        "real": 1.5,
    }
    written = (
        report_writer.Device(0, "A GPU", {**attributes, "single": Float32(0.5)}),
        report_writer.Device(2, "Another GPU", {"zero": 0}),
    )
    session = _read(report_writer.Session(devices=written))
    assert session.devices == (
        Device(0, "A GPU", {**attributes, "single": 0.5}),
        Device(2, "Another GPU", {"zero": 0}),
    )


def test_device_of_two_processes_is_one_device() -> None:
    device = message(3, message(6, integer(1, 0), text(2, "A GPU")))
    assert read_session([device, device]).devices == (Device(0, "A GPU", {}),)


def test_processes_are_named_without_directories_in_the_order_of_their_blocks() -> None:
    kernels = [Kernel("k", process_id=7), Kernel("k", process_id=3), Kernel("k", process_id=7)]
    written = report_writer.Session(processes=((7, "C:\\work\\a.exe\0"), (3, "/usr/bin/python3.11")))
    session = read_session(block.header for block in walk(write_report(kernels, written)).blocks)
    assert session.processes == (Process(7, "a.exe"), Process(3, "python3.11"))


def test_process_comes_from_the_session_if_blocks_name_none() -> None:
    header = message(3, integer(1, 31), message(9, text(1, "/home/somebody/run")))
    assert read_session([header]).processes == (Process(31, "run"),)


def test_command_line_is_kept_as_it_is() -> None:
    line = '"C:\\Program Files\\ncu.exe" --set full a.exe'
    assert _read_line(f"{line} ").command_line == line


def test_program_and_arguments_stand_in_for_a_missing_command_line() -> None:
    session = _read(report_writer.Session(command_line=None, executable=("./program", "--size 4")))
    assert session.command_line == "./program --size 4"


def test_options_are_read_in_both_spellings() -> None:
    session = _read_line("ncu --clock-control=none --cache-control none --replay-mode app-range ./program")
    assert (session.clock_control, session.cache_control, session.replay_mode) == (
        "none",
        "none",
        "app-range",
    )


@pytest.mark.parametrize(
    ("options", "chooses"),
    [
        ("--launch-skip 10 --launch-count 100", False),
        ("-k regex:elementwise", True),
        ("--kernel-name=add", True),
        ("--filter-mode per-launch-config --launch-count 1", True),
        ("--nvtx --nvtx-include step/", True),
        ("--nvtx", False),
        ("./program -k 3", False),  # the program's own
    ],
)
def test_options_that_leave_out_launches_between_others_are_known(options: str, *, chooses: bool) -> None:
    assert _read_line(f"ncu {options} ./program").chooses_launches == chooses


def test_without_a_command_line_of_ncu_it_is_not_known_whether_launches_were_left_out() -> None:
    assert _read(report_writer.Session(command_line="", executable=("/opt/program", "-k"))).chooses_launches is None


def test_modes_that_were_not_requested_are_none() -> None:
    session = _read_line("ncu -o report ./program")
    assert (session.clock_control, session.cache_control, session.replay_mode) == (None, None, None)


def test_settings_of_the_graphical_interface_win_and_are_spelt_as_options() -> None:
    session = _read(
        report_writer.Session(
            command_line="ncu --clock-control none ./program",
            clock_control="Base",
            replay_mode="Application Range",
        )
    )
    assert (session.clock_control, session.replay_mode) == ("base", "app-range")


def test_sets_and_sections_are_those_asked_for_in_order() -> None:
    session = _read_line("ncu --set basic --section Occupancy -f --section=regex:Speed.* --set roofline -o r ./program")
    assert session.sets == ("basic", "roofline")
    assert session.sections == ("Occupancy", "regex:Speed.*")


@pytest.mark.parametrize(
    "line",
    [
        "ncu -o report ./program --set full",
        "ncu --nvtx ./program --set full",
        "ncu --nvtx -c 3 -k regex:gemm -- ./program --set full",
        '"C:\\Program Files\\ncu.exe" --export "a b" -f "C:\\my program.exe" --set full',
        "ncu --metrics=a,b python --set full",
        "ncu",
        "",
    ],
)
def test_options_of_the_program_are_not_options_of_ncu(line: str) -> None:
    assert _read_line(line).sets == ()


def test_option_after_a_flag_is_read() -> None:
    assert _read_line("ncu --nvtx --quiet -f --set full ./program").sets == ("full",)


def test_option_without_its_argument_is_not_fatal() -> None:
    assert _read_line("ncu --set").sets == ("",)


def test_nothing_of_the_host_is_exposed() -> None:
    session = _read(report_writer.Session(host_name="secret-host"))
    assert "secret-host" not in repr(session)


def test_only_the_malformed_message_is_lost() -> None:
    broken = message(3, b"\x42\x7f")  # VersionInfo that claims 127 bytes and has none
    version = message(3, message(8, text(1, "CUDA Version"), text(2, "12.4")))
    broken_device = message(3, message(6, integer(1, 0), b"\x1a\x7f"))  # an attribute cut off
    session = read_session([broken, b"\xff", version, broken_device])
    assert session.cuda_version == "12.4"
    assert session.devices == (Device(0, None, {}),)


def test_text_that_is_not_utf8_is_marked() -> None:
    header = message(3, message(11, b"ncu \xff.exe"))
    assert read_session([header]).command_line == "ncu \N{REPLACEMENT CHARACTER}.exe"


@given(st.lists(st.binary(max_size=48), max_size=4))
def test_any_headers_give_a_session(bodies: list[bytes]) -> None:
    headers = [message(number, body) for body in bodies for number in (3, 6)]
    assert isinstance(read_session([*headers, *bodies]), Session)


@pytest.mark.corpus
def test_corpus_sessions_agree_with_the_catalogue() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the checkout")
    with (CORPUS / "catalog.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        blocks = walk((CORPUS / row["file"]).read_bytes()).blocks
        session = read_session(block.header for block in blocks)
        (device,) = session.devices
        major, minor = (
            device.attributes[f"device__attribute_compute_capability_{part}"] for part in ("major", "minor")
        )
        versions = (session.ncu_version, session.cuda_version, session.driver_version)
        found[row["file"]] = (*(version or "" for version in versions), device.name, f"{major}.{minor}")
    columns = ("ncu_version", "cuda_version", "driver", "gpus", "cc")
    assert found == {row["file"]: tuple(row[column] for column in columns) for row in rows}
