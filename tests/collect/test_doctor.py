"""What the doctor says of machines that are not this one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncuroof.collect.doctor import Check, Surroundings, can_profile, examine
from ncuroof.errors import NcuNotFoundError
from ncuroof.ncu.machine import Gpu, find_ncu, find_nsys, ncu_version, output_of, parse_gpus, visible_places
from ncuroof.ncu.settings import load_settings
from tests.support.ncu import find_ncu as find_the_real_ncu

H200 = "NVIDIA H200, 9.0, 570.86.15, Disabled\n"
OPEN, RESTRICTED = "RmProfilingAdminOnly: 0\n", "EnableMSI: 1\nRmProfilingAdminOnly: 1\n"
NOBODY, ADMIN, PERFMON = (f"Name:\tx\nCapEff:\t{held:016x}\n" for held in (0, 1 << 21, 1 << 38))


def machine(**more: Any) -> Surroundings:
    files = {
        "/proc/driver/nvidia/params": more.get("params", OPEN),
        "/proc/self/status": more.get("status", NOBODY),
        "/etc/os-release": more.get("release"),
        "/proc/version": more.get("version", "Linux version 6.1"),
    }
    outputs = {"nvidia-smi": more.get("smi", H200), "ps": more.get("ps", "bash\npython\n")}
    outputs["/usr/local/cuda/bin/ncu"] = more.get("chips")

    def find(_: object) -> Path:
        if more.get("ncu") is None and "ncu" in more:
            raise NcuNotFoundError("ncu is not there", hint="install it")
        return Path("/usr/local/cuda/bin/ncu")

    return Surroundings(
        environment={"TMPDIR": str(more.get("tmp", "/tmp")), "NCUROOF_NCU": more.get("named", "")},
        run=lambda words: outputs.get(words[0]),
        read=lambda path: files.get(str(path)),
        find=find,
        find_nsys=lambda _: more.get("nsys"),
        version=lambda _: more.get("ncu", (2025, 3, 1, 0)),
        user_id=more.get("user", 1000),
    )


def checks(**more: Any) -> dict[str, Check]:
    return {check.name: check for check in examine(machine(**more), load_settings())}


def test_without_ncu_nothing_else_is_checked() -> None:
    (found,) = examine(replace(machine(), records_here=False), load_settings())
    assert (found.state, found.found) == ("failed", "recording needs Linux, this is Windows")
    assert "--remote-plan" in found.fix


def test_a_good_machine_can_profile() -> None:
    found = examine(machine(), load_settings())
    assert {check.state for check in found} == {"ok"}
    assert can_profile(found)
    assert [check.found for check in found][:3] == [
        "/usr/local/cuda/bin/ncu, version 2025.3.1.0",
        "version 570.86.15",
        "NVIDIA H200, compute capability 9.0",
    ]


def test_nsys_is_looked_for_where_ncu_is(tmp_path: Path) -> None:
    nsys = tmp_path / "2025.3.1/bin/nsys"
    nsys.parent.mkdir(parents=True)
    nsys.touch(mode=0o755)
    assert find_nsys({"PATH": "/nowhere"}, [tmp_path]) == nsys
    assert find_nsys({"PATH": str(nsys.parent)}, []) == nsys
    assert find_nsys({"PATH": "/nowhere"}, [tmp_path / "none"]) is None


def test_nsys_is_shown_and_not_needed() -> None:
    assert checks(nsys=Path("/usr/local/cuda/bin/nsys"))["nsys"] == Check("nsys", "ok", "/usr/local/cuda/bin/nsys")
    assert checks()["nsys"].found.startswith("not found; optional")


def test_without_permission_the_three_fixes_are_shown() -> None:
    check = checks(params=RESTRICTED)["counter permission"]
    assert check.state == "failed"
    assert "ERR_NVGPUCTRPERM" in check.found
    for fix in ("NVreg_RestrictProfilingToAdminUsers=0", "--cap-add=SYS_ADMIN", "srun"):
        assert fix in check.fix


@pytest.mark.parametrize("status", [ADMIN, PERFMON])
def test_a_privilege_stands_above_the_drivers_parameter(status: str) -> None:
    assert checks(params=RESTRICTED, status=status)["counter permission"].state == "ok"


def test_root_without_the_privilege_as_in_a_container_has_no_permission() -> None:
    assert checks(params=RESTRICTED, status=NOBODY, user=0)["counter permission"].state == "failed"


def test_a_check_that_cannot_be_made_is_unknown_and_does_not_fail() -> None:
    found = examine(machine(params=None, ps=None), load_settings())
    assert {check.name for check in found if check.state == "unknown"} == {"counter permission", "other profilers"}
    assert can_profile(found)


@pytest.mark.parametrize(
    ("more", "name", "state", "message"),
    [
        ({"ncu": None}, "ncu", "failed", "is not there"),
        ({"ncu": (2020, 1)}, "ncu", "failed", "2021.3 or later is needed"),
        ({"smi": None}, "driver", "failed", "nvidia-smi is missing"),
        ({"smi": ""}, "driver", "failed", "lists no GPU"),
        ({"smi": "Tesla P100, 6.0, 535.1, [N/A]\n"}, "GPU 0", "failed", "supports 7.0 and later"),
        ({"smi": "NVIDIA R100, 13.0, 600.1, Disabled\n"}, "GPU 0", "warning", "no counter list"),
        ({"smi": "NVIDIA X, [N/A], 600.1, Disabled\n"}, "GPU 0", "unknown", "not reported"),
        ({"smi": "NVIDIA A100-SXM4-40GB, 8.0, 570.1, Enabled\n"}, "GPU 0, MIG", "warning", "cannot be counted"),
        ({"ps": "nv-hostengine\nbash\n"}, "other profilers", "warning", "nv-hostengine running"),
        ({"ps": "nsys\n"}, "other profilers", "warning", "nsys running"),
        ({"version": "Linux 5.15 Microsoft WSL2"}, "WSL", "warning", "the Windows driver controls counter access"),
        ({"tmp": "/no/such/folder"}, "temporary files", "failed", "No such file"),
    ],
)
def test_each_problem_is_shown_with_a_fix(more: dict[str, Any], name: str, state: str, message: str) -> None:
    check = checks(**more)[name]
    assert check.state == state
    assert message in check.found
    assert check.fix or state == "unknown"
    assert can_profile(examine(machine(**more), load_settings())) == (state != "failed")


def test_dcgm_is_paused_by_its_own_command() -> None:
    assert "dcgmi profile --pause" in checks(ps="dcgm-exporter\n")["other profilers"].fix


# ---- finding things -----------------------------------------------------------------------------------------------------------


def test_gpus_of_nvidia_smi() -> None:
    said = H200 + "NVIDIA GeForce RTX 4090, 8.9, 570.1, [N/A]\nsomething else\n"
    assert parse_gpus(said) == (
        Gpu("NVIDIA H200", 90, "570.86.15", is_mig=False),
        Gpu("NVIDIA GeForce RTX 4090", 89, "570.1", is_mig=False),
    )


UUIDS = ["GPU-0a1b-1", "GPU-0a1b-2", "GPU-7c"]


@pytest.mark.parametrize(
    ("visible", "order", "places"),
    [
        (None, None, None),
        ("", None, None),
        ("1", None, None),  # the fastest but one, whichever that is
        ("1", "FASTEST_FIRST", None),
        ("1", "PCI_BUS_ID", [1]),
        ("2, 0", "PCI_BUS_ID", [2, 0]),
        ("3", "PCI_BUS_ID", None),
        ("GPU-7", None, [2]),
        ("GPU-0a1b-2,GPU-7c", None, [1, 2]),
        ("GPU-0a1b", None, None),  # of two
        ("GPU-7c,MIG-7c/1/0", None, None),
    ],
)
def test_gpus_that_the_program_may_use(visible: str | None, order: str | None, places: list[int] | None) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    assert visible_places({name: value for name, value in variables.items() if value is not None}, UUIDS) == places


def _executable(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_ncu_is_looked_for_in_order(tmp_path: Path) -> None:
    named = _executable(tmp_path / "named/my-ncu")
    on_path = _executable(tmp_path / "path/ncu")
    toolkits = tmp_path / "local"
    old, new = (_executable(toolkits / f"cuda-{version}/bin/ncu") for version in ("12.9", "13.0"))
    environment = {"NCUROOF_NCU": str(named), "PATH": str(on_path.parent)}
    assert find_ncu(environment, [toolkits]) == named
    assert find_ncu({"PATH": environment["PATH"]}, [toolkits]) == on_path
    assert find_ncu({"PATH": "/nowhere"}, [toolkits]) == new
    assert find_ncu({"PATH": "/nowhere", "CUDA_HOME": str(old.parents[1])}, [toolkits]) == old
    with pytest.raises(NcuNotFoundError, match="neither on PATH nor in a CUDA toolkit"):
        find_ncu({"PATH": "/nowhere"}, [tmp_path / "none"])
    with pytest.raises(NcuNotFoundError, match="NCUROOF_NCU is set to /nowhere/ncu"):
        find_ncu({"NCUROOF_NCU": "/nowhere/ncu"}, [toolkits])


def test_the_version_is_asked_for(tmp_path: Path) -> None:
    assert ncu_version(_executable(tmp_path / "ncu", "echo 'Version 2025.3.1.0 (build 1)'")) == (2025, 3, 1, 0)
    with pytest.raises(NcuNotFoundError, match="is not a working ncu"):
        ncu_version(_executable(tmp_path / "other", "echo hello"))


def test_a_gpu_that_is_too_old_does_not_matter_beside_a_supported_one() -> None:
    old = "NVIDIA GeForce GT 1030, 6.1, 570.86.15, [N/A]\n"
    assert checks(smi=old)["GPU 0"].state == "failed"
    both = checks(smi=f"{old}{H200}")
    assert (both["GPU 0"].state, both["GPU 1"].state) == ("warning", "ok")


@pytest.mark.parametrize(
    ("chips", "state"), [("ga100, gh100, tu102\n", "failed"), ("gb100, gh100\n", "ok"), (None, "ok"), ("", "ok")]
)
def test_a_gpu_that_this_ncu_does_not_know(chips: str | None, state: str) -> None:
    gpu = checks(smi="NVIDIA B200, 10.0, 570.86.15, Disabled\n", chips=chips)["GPU 0"]
    assert gpu.state == state
    assert ("this ncu does not support it" in gpu.found) is (state == "failed")


@pytest.mark.oracle
def test_the_real_ncu_lists_the_chips_of_its_time() -> None:
    ncu = find_the_real_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")
    listed = str(output_of([str(ncu), "--list-chips"]))
    settings = load_settings()
    assert all(settings.chips[capability] in listed for capability in (70, 75, 80, 86, 87, 89, 90))
    assert set(settings.chips) == set(settings.capabilities)
