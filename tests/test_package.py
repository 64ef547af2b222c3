"""The package: importing it is cheap, and an installed wheel has all it needs and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from ncuroof import resources
from ncuroof._version import __version__
from tests.support import demo
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("profiles", "templates", "demo", "skills")
MOST_WHEEL_BYTES = 1_800_000
HEAVY = [
    "torch",
    "pandas",
    "plotly",
    "ncu_report",
    "polars",
    "pyarrow",
    "jinja2",
    "rich",
    "zstandard",
    "google.protobuf",
]


def _loaded(code: str) -> set[str]:
    """Return the heavy modules that are loaded after `code` ran in a fresh interpreter."""
    check = f"\nimport json, sys\nprint('\\n' + json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


# ---- what is loaded when -----------------------------------------------------------------------------


def test_importing_loads_nothing_heavy() -> None:
    assert _loaded("import ncuroof; ncuroof.__version__") == set()


@pytest.mark.long
def test_the_verbs_load_polars_and_neither_pages_nor_readers() -> None:
    assert _loaded("import ncuroof; ncuroof.read") == {"polars"}


@pytest.mark.parametrize("option", ["--help", "--version", "-h"])
def test_help_and_version_load_nothing_heavy(option: str) -> None:
    code = f"from ncuroof.cli import main\ntry: main([{option!r}])\nexcept SystemExit: pass"
    assert _loaded(code) == set()


@pytest.mark.parametrize("module", ["ncuroof.cli.program", "click", "ncuroof.cli.gpus", "polars"])
def test_an_interrupt_while_modules_load_is_no_traceback(module: str) -> None:
    code = f"""
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}: raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from ncuroof.cli import main
main(["report", {str(demo.REPORT)!r}, "-o", "-"] if {module!r} == "polars" else ["gpus"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nncuroof: interrupted\n")


def test_before_interrupts_are_handled_next_to_nothing_loads() -> None:
    code = "import sys; before = set(sys.modules); import ncuroof.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env={"PYTHONPATH": "."},
    )
    assert not {"typing", "click", "re", "enum"} & set(done.stdout.split())


def test_a_summary_loads_no_page() -> None:
    code = f"import ncuroof\nprint(ncuroof.present.render(ncuroof.read({str(demo.REPORT)!r}).analyse(), 'json')[:1])"
    assert _loaded("import ncuroof.present\n" + code) & {"torch", "pandas", "plotly", "jinja2", "zstandard"} == set()


def test_unknown_names_are_attribute_errors() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ncuroof; ncuroof.nonsense"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert "AttributeError: module 'ncuroof' has no attribute 'nonsense'" in done.stderr


def test_a_checkout_uses_its_own_data() -> None:
    assert resources.folder("profiles") == ROOT / "profiles"
    assert resources.folder("templates") == ROOT / "templates"


# ---- the wheel ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as the build backend makes it; hatchling comes from this environment, else from the package index."""
    folder = tmp_path_factory.mktemp("wheel")
    backend = folder / "backend"
    if subprocess.run([sys.executable, "-c", "import hatchling"], capture_output=True, check=False).returncode != 0:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(backend), "hatchling>=1.25,<2"]
        if subprocess.run(install, capture_output=True, timeout=PATIENCE_S, check=False).returncode != 0:
            pytest.skip("hatchling is neither installed nor to be had from the package index")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    environment = {**os.environ, "PYTHONPATH": str(backend)}
    subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE_S, check=True)
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_code_data_and_nothing_else(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name == f"ncuroof-{__version__}-py3-none-any.whl"
    expected = {
        *(str(path.relative_to(ROOT)) for path in (ROOT / "ncuroof").rglob("*.py")),
        *(f"ncuroof/_data/{path.relative_to(ROOT)}" for path in _files(*(ROOT / name for name in SHIPPED))),
        "ncuroof/py.typed",
    }
    assert {"ncuroof/_data/profiles/metrics.toml", "ncuroof/_data/profiles/gpus/h200-sxm.toml"} <= expected
    assert any(name.startswith("ncuroof/_data/templates/") for name in expected)
    assert {name for name in held if ".dist-info/" not in name} == expected
    assert wheel.stat().st_size < MOST_WHEEL_BYTES


def _files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def test_the_wheel_names_its_license_and_program(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        info = f"ncuroof-{__version__}.dist-info"
        assert "ncuroof = ncuroof.cli:main" in held.read(f"{info}/entry_points.txt").decode()
        assert held.read(f"{info}/licenses/LICENSE")
        metadata = held.read(f"{info}/METADATA").decode()
    assert "Requires-Python: >=3.10" in metadata
    assert str(ROOT) not in metadata


@pytest.mark.long
def test_an_installed_wheel_finds_its_data_and_reports(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    venv.create(place, with_pip=False, symlinks=True)
    (packages,) = (place / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    # Dependencies are those of this environment, and the checkout, which may be installed there, is not among them.
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    python = place / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(python), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    found = run("-c", "from ncuroof import resources; print(resources.folder('profiles'))")
    assert Path(found.strip()).resolve() == (packages / "ncuroof" / "_data" / "profiles").resolve()
    assert run("-m", "ncuroof", "--version").strip() == f"ncuroof, version {__version__}"
    assert "h200-sxm" in run("-m", "ncuroof", "gpus")
    assert run("-m", "ncuroof", "explain", "-v", "tail_wave").endswith("\nDefined in profiles/rules/grid.toml\n")
    run("-m", "ncuroof", "report", str(demo.REPORT), "-o", "x.json")
    assert len(json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["kernels"]) == len(demo.PLANTED)
    run("-m", "ncuroof", "report", str(demo.REPORT), "-o", "x.html")
    assert (tmp_path / "x.html").read_bytes().lower().startswith(b"<!doctype html>")
    assert "A step takes 13.9 ms" in run("-m", "ncuroof", "demo")
    assert (tmp_path / "train_transformer.roofline.html").is_file()
