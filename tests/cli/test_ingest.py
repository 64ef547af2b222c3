"""`ncuroof ingest` and `ncuroof fleet` as programs see them."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import fsspec
import polars as pl
import pytest

from ncuroof.batch.dataset import Dataset, find_reports
from ncuroof.batch.ingest import Workers, ingest
from tests.cli.running import run_main
from tests.support.many_reports import N_LAUNCHES, small_report, write_many


def take_in(*arguments: str | Path) -> int:
    return run_main("ingest", *arguments, "--threads", "--workers", "2")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four reports: one commit twice, another twice, 20 % slower in its kernel k0."""
    folder = tmp_path_factory.mktemp("fleet")
    for commit, k0 in (("aaa", 100.0), ("bbb", 120.0)):
        runs = folder / commit
        runs.mkdir()
        for number in range(2):
            day = number if commit == "aaa" else number + 2
            (runs / f"{number}.ncu-rep").write_bytes(small_report(day, times_us=(k0, 200.0), clock_control="Base"))
        assert take_in(runs, "-o", folder / "dataset", "--label", f"commit={commit}") == 0
    return folder / "dataset"


def test_rows_name_their_origin(tmp_path: Path) -> None:
    report = tmp_path / "one.ncu-rep"
    report.write_bytes(small_report(1, clock_control="Base"))
    assert take_in(report, "-o", tmp_path / "d", "--label", "commit=abc", "--label", "branch=main") == 0
    rows = Dataset.at(str(tmp_path / "d")).kernels().collect()
    assert rows["duration_ns"].to_list() == [100e3, 200e3, 300e3]
    first = rows.row(0, named=True)
    assert first["report_file"] == "one.ncu-rep"
    assert first["report_location"] == str(report)
    assert first["labels"] == [{"name": "branch", "value": "main"}, {"name": "commit", "value": "abc"}]
    # 1 700 000 000 s and a day.
    assert first["recorded_at"] == datetime(2023, 11, 15, 22, 13, 20, tzinfo=timezone.utc)
    assert (first["driver_version"], first["ncu_version"], first["cuda_version"]) == ("580.65", "2025.3.1", "13.0")
    assert (first["gpu_name"], first["compute_capability"]) == ("NVIDIA A100-SXM4-40GB", 80)
    assert (first["clock_control"], first["name"], first["process_name"]) == ("base", "k0()", "app")


@pytest.mark.long
def test_copies_of_a_report_count_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs, target = tmp_path / "runs", tmp_path / "d"
    write_many(runs, 3)
    (runs / "deep/er").mkdir(parents=True)
    shutil.copy(runs / "run00000.ncu-rep", runs / "deep/er/copy.ncu-rep")
    assert take_in(f"{runs}/**/*.ncu-rep", runs, "-o", target) == 0
    assert "3 reports added (9 launches), 1 already there, 0 failed" in capfd.readouterr().err
    write_many(runs, 5)
    assert take_in(runs, "-o", target) == 0
    assert "2 reports added (6 launches), 4 already there, 0 failed" in capfd.readouterr().err
    rows = Dataset.at(str(target)).kernels().collect()
    assert rows.height == 5 * N_LAUNCHES
    assert rows.select("report_sha256", "id").n_unique() == rows.height


@pytest.mark.long
def test_bad_files_are_listed_and_good_files_are_added(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs, target = tmp_path / "runs", tmp_path / "d"
    write_many(runs, 2)
    (runs / "text.ncu-rep").write_text("no report")
    assert take_in(runs, "-o", target) == 1
    said = capfd.readouterr().err
    assert "1 of 3 reports could not be ingested" in said
    assert f"{runs / 'text.ncu-rep'}: report-format: expected " in said  # the name once
    assert Dataset.at(str(target)).failures().collect()["error"].to_list() == ["report-format"]
    assert run_main("fleet", target, "--failures") == 0
    assert "report-format" in capfd.readouterr().out
    (runs / "text.ncu-rep").write_bytes(small_report(7))
    assert take_in(runs, "-o", target) == 0
    assert Dataset.at(str(target)).failures().collect().is_empty()


def test_a_mistyped_path_makes_no_dataset(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Before, it made one that held the typo as a failure."""
    write_many(tmp_path / "runs", 1)
    assert take_in(tmp_path / "runs", tmp_path / "absent", "-o", tmp_path / "d") == 1
    assert "absent: no such file or folder" in capfd.readouterr().err
    assert not (tmp_path / "d").exists()


@pytest.mark.long
def test_a_second_run_keeps_labels_unless_they_are_set_or_removed(tmp_path: Path) -> None:
    runs, target = tmp_path / "runs", tmp_path / "d"
    write_many(runs, 1)
    assert take_in(runs, "-o", target, "--label", "commit=abc", "--label", "branch=old") == 0
    for given, branch in (((), "old"), (("--label", "branch=main"), "main")):
        assert take_in(runs, "-o", target, "--again", *given) == 0
        rows = Dataset.at(str(target)).kernels().collect()
        expected = [{"name": "branch", "value": branch}, {"name": "commit", "value": "abc"}]
        assert rows["labels"].to_list() == [expected] * N_LAUNCHES
    assert take_in(runs, "-o", target, "--again", "--label", "branch=") == 0
    rows = Dataset.at(str(target)).kernels().collect()
    assert rows["labels"].to_list() == [[{"name": "commit", "value": "abc"}]] * N_LAUNCHES
    (file,) = target.glob("kernels/*/*.parquet")
    file.write_bytes(b"PAR1, then a disk that was full")
    assert take_in(runs, "-o", target, "--again") == 0
    assert Dataset.at(str(target)).kernels().collect()["labels"].to_list() == [[]] * N_LAUNCHES


def test_a_store_of_objects_is_a_dataset_and_a_source(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe_file(f"{tmp_path}/in/x.ncu-rep", small_report())
    dataset = Dataset.at(f"memory://{tmp_path}/d")
    ingest(
        find_reports([f"memory://{tmp_path}/in/*.ncu-rep"]),
        dataset,
        labels={},
        workers=Workers(n_workers=1, are_threads=True),
        progress=lambda outcome: None,
    )
    rows = dataset.kernels().collect()
    assert rows["report_file"].to_list() == ["x.ncu-rep"] * N_LAUNCHES
    assert rows["report_location"][0] == f"memory://{tmp_path}/in/x.ncu-rep"
    assert run_main("fleet", f"memory://{tmp_path}/d") == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("none*.ncu-rep",), 1, "expected reports, found none"),
        (("x.ncu-rep", "--label", "commit"), 2, "expected NAME=VALUE"),
        (("x.ncu-rep", "--label", "commit="), 2, "expected NAME=VALUE"),  # as of a variable that is not set
        (("x.ncu-rep", "--again", "--label", "=abc"), 2, "expected NAME=VALUE"),
        (("x.ncu-rep", "--scheduler", "tcp://127.0.0.1:1", "--workers", "2"), 2, "exclude --scheduler"),
    ],
)
def test_wrong_usage_is_explained(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    assert run_main("ingest", *arguments, "-o", tmp_path / "d") == exit_code
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("s3://", "s3://: expected the place of a dataset, found no folder in it"),
        ("file:///", "file:///: expected the place of a dataset, found no folder in it"),
        ("/", "/: expected the place of a dataset, found no folder in it"),
        ("://fleet", "://fleet: expected the place of a dataset, found no folder in it"),
        ("memory://fleet", "memory://fleet: expected a place that outlasts this command, found this process's memory"),
    ],
)
def test_a_destination_that_keeps_nothing_is_refused_before_a_report_is_read(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    location: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert take_in("absent/*.ncu-rep", "-o", location) == 1
    error, hint = capfd.readouterr().err.splitlines()
    assert error == f"ncuroof: {message}"
    assert "/FOLDER" in hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "moon"), "--by: expected one of driver, cuda, ncu, ncuroof, report, compiler, code, found 'moon'"),
        (("--by", "label:none"), "found 'label:none'"),
        (("--fail-on", "moon"), "--fail-on: expected one of driver"),
        (("--fail-on", "driver", "--failures"), "--fail-on judges changes of time"),
        (("--kernel", "("), "--kernel: expected a regular expression, found '('"),
        (("--gpu", "*"), "--gpu: expected a regular expression, found '*'"),
    ],
)
def test_wrong_queries_are_explained(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    Dataset.at(str(tmp_path / "d")).prepare()
    assert run_main("fleet", tmp_path / "d", *arguments) == 2
    assert message in capfd.readouterr().err


# ---- fleet ------------------------------------------------------------------------------------------------------------------


def answers(dataset: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> dict:
    capfd.readouterr()
    assert run_main("fleet", dataset, "--format", "json", *arguments) == 0
    return json.loads(capfd.readouterr().out)


def test_a_regression_of_the_newest_commit_fails_if_asked_to(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("fleet", dataset, "--by", "driver", "--fail-on", "label:commit") == 3
    said = capfd.readouterr()
    assert "slower by label commit (1)" in said.out
    assert said.err == "ncuroof: 1 kernel slower: k0 1.2× slower by label:commit (aaa → bbb)\n"
    assert run_main("fleet", dataset, "--fail-on", "driver") == 0


def test_the_document_lists_slower_kernels_by_commit(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = answers(dataset, capfd)
    assert found["schema"] == "ncuroof.fleet_answers/1"
    assert (found["overview"]["n_reports"], found["overview"]["n_launches"]) == (4, 8)
    (by_commit,) = (each for each in found["changes"] if each["by"] == "label:commit")
    (slower,) = by_commit["slower"]["rows"]
    assert (slower["name"], slower["before_value"], slower["value"]) == ("k0()", "aaa", "bbb")
    assert slower["change_frac"] == pytest.approx(0.2)
    assert by_commit["n_compared"] == 2  # k0 and k1, of which one changed
    assert by_commit["faster"]["n"] == by_commit["other_work"]["n"] == 0


def test_text_and_markdown_name_the_regression(
    dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_main("fleet", dataset) == 0
    text = capfd.readouterr().out
    assert "slower by label commit (1)" in text
    assert "1.2× slower" in text
    assert run_main("fleet", dataset, "-o", tmp_path / "fleet.md") == 0
    assert "## slower by label commit \\(1\\)" in (tmp_path / "fleet.md").read_text().replace("(1)", "\\(1\\)")


def test_filters_select_rows(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert answers(dataset, capfd, "--kernel", "^k1")["overview"]["n_launches"] == 4
    # Days 0, 1, 2 and 3 from 2023-11-14 on.
    assert answers(dataset, capfd, "--since", "2023-11-16")["overview"]["n_reports"] == 2


@pytest.mark.parametrize(
    ("arguments", "filters"),
    [
        (("--kernel", "zzz"), "--kernel 'zzz'"),
        (("--gpu", "H100"), "--gpu 'H100'"),
        (("--since", "2999-01-01"), "--since 2999-01-01"),
        (("--kernel", "k0", "--gpu", "H100"), "--kernel 'k0' --gpu 'H100'"),
        (("--kernel", "zzz", "--sql", "SELECT COUNT(*) FROM kernels"), "--kernel 'zzz'"),
    ],
)
def test_filters_that_match_nothing_are_distinguished_from_an_empty_dataset(
    dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], filters: str
) -> None:
    assert run_main("fleet", dataset, *arguments) == 2
    out, said = capfd.readouterr()
    # Four reports of two launches.
    assert f"Error: {filters}: matches none of the 8 profiled launches in the dataset" in said
    assert out == ""
    Dataset.at(str(tmp_path / "d")).prepare()
    assert run_main("fleet", tmp_path / "d", *arguments) == 0


def test_failures_are_listed_whatever_the_filters(dataset: Path) -> None:
    assert run_main("fleet", dataset, "--kernel", "zzz", "--failures") == 0


def test_sql_sees_labels_as_columns(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    query = 'SELECT "label.commit" AS c, SUM(duration_ns) AS ns FROM kernels GROUP BY "label.commit" ORDER BY c'
    assert answers(dataset, capfd, "--sql", query)["rows"] == [
        {"c": "aaa", "ns": 2 * (100e3 + 200e3)},
        {"c": "bbb", "ns": 2 * (120e3 + 200e3)},
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEKT 1", "found: SELEKT"),
        ("SELECT nothing FROM kernels", 'unable to find column "nothing"'),
        ("SELECT * FROM nowhere", "'nowhere' was not found"),
        ("SELECT CAST(name AS INT) FROM kernels", "conversion from `str`"),
    ],
)
def test_the_error_of_a_wrong_query_omits_its_plan(
    dataset: Path, capfd: pytest.CaptureFixture[str], query: str, said: str
) -> None:
    assert run_main("fleet", dataset, "--sql", query) == 2
    error, hint = capfd.readouterr().err.splitlines()
    assert said in error
    assert len(error) < 400
    assert "plan" not in error
    assert "hint: ncuroof explain lists the columns" in hint


@pytest.mark.parametrize(
    "query", ["DROP TABLE kernels", " delete from kernels", "-- all\n/* of it */ TRUNCATE TABLE kernels"]
)
def test_empty_sql_is_refused(dataset: Path, capfd: pytest.CaptureFixture[str], query: str) -> None:
    assert run_main("fleet", dataset, "--sql", query) == 2
    assert "--sql: expected a query that begins with SELECT or WITH, found " in capfd.readouterr().err


def test_sql_after_a_comment_is_run(dataset: Path) -> None:
    assert run_main("fleet", dataset, "--sql", "-- DROP it?\nSELECT COUNT(*) AS n FROM kernels") == 0


def test_failures_are_a_query_of_their_own(dataset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("fleet", dataset, "--failures", "--sql", "SELECT * FROM failures") == 2
    assert "--failures is a query of its own" in capfd.readouterr().err


def test_an_empty_dataset_answers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Dataset.at(str(tmp_path / "d")).prepare()
    assert run_main("fleet", tmp_path / "d") == 0
    assert "0 reports" in capfd.readouterr().out


def test_the_files_can_be_read_by_anything_that_reads_parquet(dataset: Path) -> None:
    assert pl.scan_parquet(f"{dataset}/kernels/*/*.parquet").select(pl.len()).collect().item() == 8
