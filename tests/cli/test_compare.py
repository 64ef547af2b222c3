"""`ncuroof compare` as programs see it: exit codes, formats, gates from options and pyproject.toml, baselines."""

from __future__ import annotations

import json
import random
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.running import run_main
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report


def written(folder: Path, name: str, times_us: dict[str, float]) -> Path:
    path = folder / name
    kernels = [
        Kernel(kernel, {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 1e3 * us, "dram__bytes.sum": 1e6})
        for kernel, us in times_us.items()
    ]
    path.write_bytes(write_report(kernels))
    return path


TIMES = {"saxpy": 400.0, "softmax": 900.0, "reduce": 250.0}


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return written(tmp_path, "before.ncu-rep", TIMES)


def test_a_run_compared_with_itself_changes_nothing_and_passes_every_gate(before: Path, capfd) -> None:
    code = run_main(
        "compare", before, before, "--gate", "time:+0%", "--gate", "kernel(.*).time:+0%", "--gate", "run.n_failed==0"
    )
    said = capfd.readouterr().out
    assert code == 0
    assert "did not change beyond measurement noise" in said
    assert said.count("gate passed") == 3


@pytest.mark.long
def test_versions_in_one_report_are_compared_by_pair(tmp_path: Path, capfd) -> None:
    path = tmp_path / "series.ncu-rep"
    metrics = METRICS_BY_CHIP["GA100"]
    kernels = (
        Kernel(name, {**metrics, "gpu__time_duration.sum": us * 1e3}) for name, us in (("one", 40.0), ("two", 20.0))
    )
    path.write_bytes(write_report([*kernels]))
    assert run_main("compare", path, "--pair", "one=two") == 0
    said = capfd.readouterr().out
    assert "the chosen kernel is 2× faster" in said
    assert "one → two" in said
    assert run_main("compare", path, "--pair", "two=one", "--gate", "time:+5%") == 3


@pytest.mark.long
def test_noise_does_not_trip_a_gate_and_a_regression_of_six_percent_does(before: Path, tmp_path: Path, capfd) -> None:
    draw = random.Random(3)
    noisy = written(tmp_path, "noisy.ncu-rep", {name: us * draw.gauss(1, 0.005) for name, us in TIMES.items()})
    slower = written(tmp_path, "slower.ncu-rep", TIMES | {"softmax": 900 * 1.06})
    assert run_main("compare", before, noisy, "--gate", "kernel(.*).time:+5%") == 0
    capfd.readouterr()
    assert run_main("compare", before, slower, "--gate", "kernel(.*).time:+5%") == 3
    said = capfd.readouterr().out
    assert "gate FAILED: kernel(.*).time:+5%" in said
    assert "softmax changed by +6.0 %" in said
    assert "saxpy changed" not in said


@pytest.mark.long
def test_formats_follow_the_suffix_and_hold_the_same(before: Path, tmp_path: Path, capfd) -> None:
    after = written(tmp_path, "after.ncu-rep", TIMES | {"softmax": 300.0})
    outputs = [tmp_path / name for name in ("c.json", "c.md", "c.xml", "c.txt")]
    options = [part for path in outputs for part in ("-o", path)]
    assert (
        run_main("compare", before, after, "--gate", "time:-10%", "--gate", "findings.high==9", "--quiet", *options)
        == 3
    )
    assert capfd.readouterr().out == ""
    document = json.loads(outputs[0].read_text(encoding="utf-8"))
    assert document["schema"] == "ncuroof.comparison/1"
    (first, *_) = document["matches"]
    assert (first["before"][0]["short_name"], first["how"], first["sureness"]) == ("softmax", "same", "certain")
    assert first["sentence"].startswith("3× faster")
    assert first["change_frac"] == pytest.approx(-2 / 3)
    assert [gate["has_passed"] for gate in document["gates"]] == [True, False]
    markdown = outputs[1].read_text(encoding="utf-8")
    assert "| `softmax` | 900 µs | 300 µs | 3× faster" in markdown
    assert "❌ `findings.high==9`" in markdown
    suite = ET.fromstring(outputs[2].read_bytes())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["time:-10%", "findings.high==9"]
    assert outputs[3].read_text(encoding="utf-8").startswith("ncuroof · compare")
    assert max(map(len, outputs[3].read_text(encoding="utf-8").splitlines())) <= 110
    # what ncuroof wrote may be written over, what others wrote may not
    assert run_main("compare", before, after, "--quiet", *options) == 0
    foreign = tmp_path / "notes.md"
    foreign.write_text("mine", encoding="utf-8")
    assert run_main("compare", before, after, "--quiet", "-o", foreign) == 1
    assert foreign.read_text(encoding="utf-8") == "mine"


@pytest.mark.long
def test_a_baseline_stands_in_for_the_report(before: Path, tmp_path: Path, capfd) -> None:
    baseline = tmp_path / "baseline.json"
    assert run_main("compare", before, before, "--save-baseline", baseline, "--quiet") == 0
    assert baseline.stat().st_size < 5000
    before.unlink()
    after = written(tmp_path, "after.ncu-rep", TIMES | {"saxpy": 800.0})
    assert run_main("compare", baseline, after, "--gate", "kernel(saxpy):+5%") == 3
    assert "2× slower" in capfd.readouterr().out


@pytest.mark.long
def test_a_baseline_is_not_renewed_if_the_result_cannot_be_written(before: Path, tmp_path: Path, capfd) -> None:
    baseline, foreign = tmp_path / "baseline.json", tmp_path / "notes.md"
    assert run_main("compare", before, before, "--save-baseline", baseline, "--quiet") == 0
    old = baseline.read_bytes()
    foreign.write_text("mine", encoding="utf-8")
    slower = written(tmp_path, "slower.ncu-rep", TIMES | {"saxpy": 800.0})
    renewed = ("compare", baseline, slower, "--gate", "time:+5%", "--save-baseline", baseline)
    assert run_main(*renewed, "-o", foreign) == 1  # run again, it would be compared with itself
    assert baseline.read_bytes() == old
    assert run_main(*renewed, "-o", baseline) in (1, 2)
    assert baseline.read_bytes() == old
    new = tmp_path / "new.json"
    assert run_main("compare", before, slower, "--save-baseline", new, "-o", new) == 2
    assert not new.exists()
    assert "need different files" in capfd.readouterr().err


@pytest.mark.long
def test_gates_of_the_project_hold_if_no_option_names_a_gate(before: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.ncuroof]\ngates = ["findings.high==9"]\n', encoding="utf-8")
    assert run_main("compare", before, before) == 3
    assert run_main("compare", before, before, "--gate", "time:+1%") == 0
    table = '[tool.ncuroof.gates]\ntime = "+0%"\n"findings.high" = "==9"\n"kernel(sax.*).roof_frac" = ">=0"\n'
    Path("pyproject.toml").write_text(table, encoding="utf-8")
    capfd.readouterr()
    assert run_main("compare", before, before) == 3
    said = capfd.readouterr().out
    assert "gate passed: time:+0%" in said
    assert "gate FAILED: findings.high==9" in said
    Path("pyproject.toml").write_text('[tool.ncuroof]\ngates = "time:+1%"\n', encoding="utf-8")
    assert run_main("compare", before, before) == 2
    Path("pyproject.toml").write_text("[tool.ncuroof\n", encoding="utf-8")
    assert run_main("compare", before, before) == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[tool.ncuroof]\ngate = ["time:+5%"]\n', "[tool.ncuroof] takes only gates, found gate"),
        ('[tool.ncuroof.gate]\ntime = "+5%"\n', "[tool.ncuroof] takes only gates, found gate"),
        (
            '[tool.ncuroof]\nlimits = 3\ngates = ["time:+5%"]\n',
            "[tool.ncuroof] takes only gates, found limits",
        ),
        ("tool = 3\n", "expected a table [tool], found int"),
        ('[tool]\nncuroof = ["time:+5%"]\n', "expected a table [tool.ncuroof], found list"),
        ("\udcff", "cannot read pyproject.toml: 'utf-8' codec"),
    ],
)
def test_a_misspelt_gate_of_the_project_is_an_error(
    before: Path, tmp_path: Path, monkeypatch, capfd, settings: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_bytes(settings.encode("utf-8", "surrogateescape"))
    assert run_main("compare", before, before) == 2
    assert said in capfd.readouterr().err


@pytest.mark.long
def test_a_project_without_gates_has_none(before: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    for settings in ("", "[tool.ruff]\nline-length = 100\n", "[tool.ncuroof]\n"):
        Path("pyproject.toml").write_text(settings, encoding="utf-8")
        assert run_main("compare", before, before) == 0
        assert "gate" not in capfd.readouterr().out


@pytest.mark.long
def test_github_gets_workflow_commands(before: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    after = written(tmp_path, "after.ncu-rep", TIMES | {"saxpy": 800.0})
    assert run_main("compare", before, after, "--gate", "time:+5%") == 3
    assert "::error title=ncuroof gate failed::time:+5%25: GPU time changed by +25.8 %25" in capfd.readouterr().err
    assert run_main("compare", before, before, "--gate", "time:+5%") == 0
    assert "::notice title=ncuroof::1 gates passed" in capfd.readouterr().err
    assert run_main("compare", before, after, "--gate", "time:+5%", "--format", "github") == 3
    said = capfd.readouterr()
    assert said.out.splitlines()[0].startswith("::error title=ncuroof gate failed::time:+5%25")
    assert "::warning title=ncuroof%3A slower::saxpy: 2× slower" in said.out
    assert "::error" not in said.err  # told once


@pytest.mark.long
def test_accepted_runs_are_kept_and_compared_with(before: Path, tmp_path: Path, capfd) -> None:
    folder = tmp_path / "accepted"
    accept = ("compare", "--baseline-dir", folder, "--accept", "--keep", "3", "--gate", "kernel(saxpy).time:+3%")
    assert run_main(*accept, before) == 0
    assert "has no accepted run, so the run is compared with itself" in capfd.readouterr().err
    for number in range(4):
        again = written(tmp_path, f"{number}.ncu-rep", TIMES | {"saxpy": 400.0 + number})
        assert run_main(*accept, again) == 0
    assert [path.name for path in sorted(folder.iterdir())] == ["0003.json", "0004.json", "0005.json"]
    assert "before: 3 accepted runs, the last of them 2.ncu-rep" in capfd.readouterr().out
    slower = written(tmp_path, "slower.ncu-rep", TIMES | {"saxpy": 424.0})
    assert run_main(*accept, slower) == 3
    assert len(list(folder.iterdir())) == 3  # and it was not accepted
    assert "saxpy changed by +5.5 %" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('gates = ["time:+5%", "findings.high==0"]', 0, "2 gates can be judged"),
        ('gates = ["time>5%"]', 2, "not a gate: 'time>5%'"),
        ("gatse = []", 2, "[tool.ncuroof] takes only gates, found gatse"),
    ],
)
def test_gates_are_checked_without_a_run(tmp_path: Path, monkeypatch, capfd, text: str, code: int, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text(f"[tool.ncuroof]\n{text}\n", encoding="utf-8")
    assert run_main("compare", "--check-gates") == code
    assert run_main("compare", "--check-gates", "pyproject.toml") == code
    assert capfd.readouterr().err.count(said) == 2
    assert run_main("compare", "--check-gates", "--gate", "time:+3%") == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("BEFORE", "--accept"), 2, "--accept adds the run to the folder of --baseline-dir"),
        (("BEFORE", "BEFORE", "--baseline-dir", "d"), 2, "expected one run, AFTER, beside --baseline-dir, found 2"),
        (("--check-gates", "-o", "a.json"), 2, "--check-gates compares nothing"),
        ((), 2, "expected two runs, BEFORE and AFTER, found 0"),
        (("none.ncu-rep", "none.ncu-rep"), 1, "none.ncu-rep"),
        (("BEFORE", "none.json"), 1, "none.json"),
        (("BEFORE", "BEFORE", "--gate", "time>3"), 2, "time needs a limit in percent"),
        (
            ("BEFORE", "BEFORE", "-o", "out.pdf"),
            2,
            "expected a suffix of .html, .htm, .json, .md, .markdown, .txt, .xml, .sarif, found .pdf",
        ),
        (("BEFORE",), 2, "expected two runs, BEFORE and AFTER, found 1"),
        (("BEFORE", "--pair", "nothing=more"), 2, "no kernel matches 'nothing'"),
        (("BEFORE", "BEFORE", "--history", "--pair", "a=b"), 2, "without --gate, --pair"),
        (("BEFORE", "--history"), 2, "--history takes two or more runs"),
        (("BEFORE", "BEFORE", "--history", "--gate", "time:+5%"), 2, "without --gate"),
        (("BEFORE", "BEFORE", "--history", "--save-baseline", "b.json"), 2, "or --save-baseline"),
        (("BEFORE", "BEFORE", "--history", "-o", "h.md"), 2, "--history writes only .json and .txt"),
        (("BEFORE", "b.json", "-o", "c.html"), 2, "the HTML page needs the report of AFTER, found a baseline"),
    ],
)
def test_bad_input_gets_a_named_error(before: Path, capfd, arguments: tuple[str, ...], code: int, said: str) -> None:
    assert run_main("compare", *(str(before) if part == "BEFORE" else part for part in arguments)) == code
    errors = capfd.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.long
def test_hostile_names_do_no_harm(tmp_path: Path, capfd) -> None:
    name = "evil</script>|`rm -rf`\x1b[31m\u202e"
    before, after = (written(tmp_path, f"{us}.ncu-rep", {name: us, "saxpy": 100.0}) for us in (100.0, 300.0))
    out = tmp_path / "c.md"
    assert run_main("compare", before, after, "-o", out, "-o", "-") == 0
    said = capfd.readouterr().out + out.read_text(encoding="utf-8")
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "</script>" not in out.read_text(encoding="utf-8")


@pytest.mark.long
def test_many_runs_are_a_line_per_kernel_with_jumps_marked(before: Path, tmp_path: Path, capfd) -> None:
    second = written(tmp_path, "second.ncu-rep", TIMES | {"softmax": 903.0})
    third = written(tmp_path, "third.ncu-rep", {"saxpy": 400.0, "softmax": 450.0})
    out = tmp_path / "h.json"
    assert run_main("compare", "--history", before, second, third, "-o", out, "-o", "-") == 0
    said = capfd.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("softmax")]
    assert line.split() == ["softmax", "900", "µs", "903", "µs", "450", "µs", "▼", "−50.0", "%"]
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schema"] == "ncuroof.history/1"
    first, *_ = document["trends"]
    assert (first["name"], first["mean_ns"]) == ("softmax", [9e5, 9.03e5, 4.5e5])
    assert [jump["run"] for jump in first["jumps"]] == [2]
    gone = next(trend for trend in document["trends"] if trend["name"] == "reduce")
    assert gone["mean_ns"] == [2.5e5, 2.5e5, None]


def cut(folder: Path) -> Path:
    """Write a report of two kernels that ends within the second: `saxpy` is left."""
    path = written(folder, "cut.ncu-rep", {"saxpy": 400.0, "softmax": 900.0})
    path.write_bytes(path.read_bytes()[:-100])
    return path


@pytest.mark.long
def test_a_truncated_run_passes_no_gate_and_every_format_says_so(before: Path, tmp_path: Path, capfd) -> None:
    after = cut(tmp_path)
    out, baseline = tmp_path / "c.json", tmp_path / "b.json"
    others = [part for suffix in ("md", "html") for part in ("-o", tmp_path / f"c.{suffix}")]
    command = ("compare", before, after, "--gate", "time:+5%", "-o", out, *others, "-o", "-")
    assert run_main(*command, "--save-baseline", baseline) == 3
    said, errors = capfd.readouterr()
    assert errors.startswith("warning: cut.ncu-rep is damaged: ")
    document = json.loads(out.read_text(encoding="utf-8"))
    (damage,) = document["after"]["damage"]
    assert damage.startswith("cut.ncu-rep: ")
    assert document["before"]["damage"] == []
    assert document["after"]["n_kernels"] == 1
    summary = document["summary"]
    assert (summary["obstacle"], summary["duration_change_frac"]) == (f"the run after is damaged ({damage})", None)
    assert "sums over the whole runs say nothing: the run after is damaged" in said
    assert "note: kernels shown as removed may be among those that are lost in the damaged run after" in said
    assert "400 µs (damaged, incomplete)" in said
    for suffix in ("md", "html"):
        assert "damaged, incomplete" in (tmp_path / f"c.{suffix}").read_text(encoding="utf-8")
    # and of the baseline, whose report may be gone
    after.unlink()
    assert run_main("compare", baseline, before, "--gate", "time:+5%") == 3
    said, errors = capfd.readouterr()
    assert errors.startswith(f"warning: {baseline}: the run of this baseline is damaged: {damage}")
    assert "note: kernels shown as added may be among those that are lost in the damaged run before" in said


@pytest.mark.long
def test_a_history_names_a_truncated_run(before: Path, tmp_path: Path, capfd) -> None:
    out = tmp_path / "h.json"
    assert run_main("compare", "--history", before, cut(tmp_path), "-o", out, "-o", "-") == 0
    said, errors = capfd.readouterr()
    assert errors.startswith("warning: cut.ncu-rep is damaged: ")
    assert "1: cut.ncu-rep · 400 µs in one launch (damaged, incomplete)" in said
    assert "0 to 1: sums over the whole runs say nothing: the run after is damaged" in said
    document = json.loads(out.read_text(encoding="utf-8"))
    assert [len(each["damage"]) for each in document["runs"]] == [0, 1]
    assert run_main("compare", "--history", before, cut(tmp_path), "--quiet") == 0
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_a_counter_of_unknown_unit_is_a_warning(before: Path, tmp_path: Path, capfd) -> None:
    table = tmp_path / "unit.csv"
    table.write_text(
        '"ID","Process ID","Process Name","Host Name","Kernel Name","gpu__time_duration.sum","dram__bytes.sum"\n'
        '"","","","","","ns","furlong"\n"0","1","a.out","host","a","100","7"\n',
        encoding="utf-8",
    )
    assert run_main("compare", table, before) == 0
    expected = "warning: unit 'furlong' of dram__bytes.sum is not known; the counter is left out\n"
    assert capfd.readouterr().err == expected


def test_a_misspelt_quantity_is_a_usage_error_whichever_kernels_there_are(before: Path, capfd) -> None:
    for pattern in (".*", "saxpy", "nothing"):
        assert run_main("compare", before, before, "--gate", f"kernel({pattern}).roof_frak>=1") == 2
        said, errors = capfd.readouterr()
        assert said == ""
        assert errors.startswith("ncuroof: kernel has no 'roof_frak'; it has time, ")


def test_a_baseline_goes_to_a_file_and_not_among_the_comparison(
    before: Path, tmp_path: Path, monkeypatch, capfd
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main("compare", before, before, "--save-baseline", "-") == 2
    assert "--save-baseline needs a file, found '-'" in capfd.readouterr().err
    assert not Path("-").exists()
    assert run_main("compare", before, before, "--save-baseline", "./-") == 0
    assert json.loads(Path("-").read_text(encoding="utf-8"))["schema"] == "ncuroof.baseline/1"
