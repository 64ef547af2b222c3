"""The GitHub Action: its shell steps run on a recorded report, its files are valid, and no input reaches a shell as code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import yaml

from tests.ci.action_steps import ACTION, ROOT, Runner, machine
from tests.cli.running import run_main
from tests.collect.making import stand_in
from tests.support.lined import lined_report
from tests.support.schemas import schema


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with the report of a kernel that takes 1 ms, and of one that takes 1.5 ms."""
    checkout = tmp_path / "checkout"
    (checkout / ".git").mkdir(parents=True)
    for name, duration_ns in (("before", 1e6), ("after", 1.5e6)):
        (checkout / f"{name}.ncu-rep").write_bytes(lined_report(duration_ns=duration_ns))
    return Runner(checkout, machine(tmp_path, sys.executable), {"event_name": "pull_request"})


# ---- step by step ------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_failed_gate_fails_the_last_step_after_everything_is_written(runner: Runner, tmp_path: Path) -> None:
    runner.github = {**runner.github, "event.pull_request.number": "7"}
    status = runner.run(
        install="none",
        report="after.ncu-rep",
        before="before.ncu-rep",
        gates="time:+5%\n\nrun.n_kernels==1\n",
        comment="true",
    )
    assert (status, runner.log) == (
        3,
        {"Read the report": 0, "Compare": 0, "Summary of the job": 0, "Comment on the pull request": 0, "Gates": 3},
    )
    assert runner.outputs["compare"]["status"] == "3"
    folder = Path(runner.outputs["read"]["folder"])
    assert {path.name for path in folder.iterdir()} == {
        "page.html",
        "summary.md",
        "comparison.md",
        "gates.xml",
        "sarif",
    }
    assert {path.name for path in (folder / "sarif").iterdir()} == {"findings.sarif", "slower.sarif"}
    assert [case.find("failure") is not None for case in ET.parse(folder / "gates.xml").iter("testcase")] == [
        True,
        False,
    ]
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.startswith("<!-- ncuroof compare -->")
    assert "❌" in summary
    assert "::error title=ncuroof gate failed::time:+5%25" in runner.printed
    calls = (tmp_path / "gh.log").read_text(encoding="utf-8").splitlines()
    assert [call.split()[:4] for call in calls][1] == ["api", "--silent", "--method", "POST"]
    assert calls[1].endswith(f"repos/owner/project/issues/7/comments -F body=@{folder}/comparison.md")


@pytest.mark.long
def test_the_first_run_has_nothing_to_compare_with_and_passes(runner: Runner, tmp_path: Path) -> None:
    assert runner.run(install="none", report="after.ncu-rep", before="none.json", comment="true") == 0
    assert "::notice title=ncuroof::there is no none.json to compare with" in runner.printed
    assert (tmp_path / "summary").read_text(encoding="utf-8").startswith("<!-- ncuroof ")
    assert not (tmp_path / "gh.log").exists()


@pytest.mark.long
def test_accepted_runs_are_kept_where_gates_hold(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "comments").write_text("11\n12\n", encoding="utf-8")
    runner.github = {**runner.github, "event.pull_request.number": "7"}
    accepted = {"install": "none", "baseline_dir": "baselines", "accept": "true", "gates": "kernel(scale).time:+3%"}
    assert runner.run(report="before.ncu-rep", **accepted) == 0
    assert runner.run(report="after.ncu-rep", comment="true", **accepted) == 3
    assert [path.name for path in (runner.folder / "baselines").iterdir()] == ["0001.json"]
    last = (tmp_path / "gh.log").read_text(encoding="utf-8").splitlines()[-1]
    assert (
        "--method PATCH repos/owner/project/issues/comments/11 -F" in last
    )  # the first comment of ours is written again


@pytest.mark.long
def test_a_program_is_profiled_with_its_words_as_they_are(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    runner.environment = {
        **runner.environment,
        "NCUROOF_NCU": str(stand_in(tmp_path / "tools")),
        "STAND_IN_REPORT": str(runner.folder / "after.ncu-rep"),
    }
    (runner.folder / "train.py").write_text(
        "import sys\nopen('words', 'w').write(repr(sys.argv[1:]))\n", encoding="utf-8"
    )
    program = "train.py --name 'a b' $(touch pwned) ;"
    assert runner.run(install="none", program=program, profile_options="--level quick --no-per-shape") == 0
    assert (runner.folder / "words").read_text(encoding="utf-8") == "['--name', 'a b', '$(touch', 'pwned)', ';']"
    assert not (runner.folder / "pwned").exists()
    assert (Path(runner.outputs["read"]["folder"]) / "page.html").exists()


@pytest.mark.long
def test_a_file_that_is_no_report_fails_at_its_step(runner: Runner) -> None:
    (runner.folder / "notes.ncu-rep").write_text("not a report", encoding="utf-8")
    assert runner.run(install="none", report="notes.ncu-rep") == 1
    assert list(runner.log) == ["Read the report"]


# ---- the files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("action.yml", "github-action"),
        ("examples/github-workflow.yml", "github-workflow"),
        ("examples/gitlab-ci.yml", "gitlab-ci"),
        (".pre-commit-hooks.yaml", "pre-commit-hooks"),
    ],
)
def test_files_for_ci_systems_are_valid(file: str, name: str) -> None:
    content = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    if True in content:  # YAML 1.1 reads the key `on` so
        content["on"] = content.pop(True)
    found = dict(schema(name))
    jsonschema.Draft7Validator({**found, "$schema": "http://json-schema.org/draft-07/schema#"}).validate(content)


def test_no_input_is_put_into_a_script() -> None:
    """What stands in a script as ${{ … }} is replaced before the shell reads it, and can be a command."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]


def test_inputs_and_outputs_are_used_and_described() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    for name in ACTION["inputs"]:
        assert f"inputs.{name} " in text, name
        assert f"`{name}`" in page, name
    ids = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    for output in ACTION["outputs"].values():
        assert re.findall(r"steps\.(\w+)\.outputs", output["value"])[0] in ids


def test_the_example_uses_inputs_that_exist() -> None:
    workflow = yaml.safe_load((ROOT / "examples/github-workflow.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in workflow["jobs"]["roofline"]["steps"] if "ncuroof@" in step.get("uses", "")]
    assert step["with"].keys() <= ACTION["inputs"].keys()


def test_the_hook_runs_a_command_that_exists(tmp_path: Path, monkeypatch, capfd) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *words = hook["entry"].split()
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.ncuroof]\ngates = ["time>5%"]\n', encoding="utf-8")
    assert program == "ncuroof"
    assert re.search(hook["files"], "sub/pyproject.toml")
    assert run_main(*words, "pyproject.toml") == 2
    assert "not a gate" in capfd.readouterr().err
