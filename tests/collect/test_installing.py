"""The command that installs what profiling lacks, on machines that are not this one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ncuroof.collect.doctor import command_for_driver, command_for_ncu
from tests.collect.test_doctor import checks

RELEASES = {
    "debian": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n',
    "ubuntu": 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n',
    "mint": 'ID=linuxmint\nID_LIKE="ubuntu debian"\n',
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "rhel": 'ID="rhel"\nID_LIKE="fedora"\n',
    "amazon": 'ID="amzn"\nID_LIKE="fedora"\n',
    "leap": 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
    "sles": 'ID="sles"\n',
    "arch": "ID=arch\n",
    "nix": "ID=nixos\n",
    "none": None,
}


def reader(release: str, *, mark: str | None = None) -> Callable[[Path], str | None]:
    files = {"/etc/os-release": RELEASES[release], mark: ""}
    return lambda path: files.get(str(path))


@pytest.mark.parametrize(
    ("release", "ncu", "driver"),
    [
        (
            "debian",
            "sudo apt-get install nsight-compute (from non-free)",
            "sudo apt-get install nvidia-driver (from non-free), then reboot",
        ),
        ("ubuntu", "sudo apt-get install nsight-compute (from multiverse)", "sudo ubuntu-drivers install, then reboot"),
        ("mint", "sudo apt-get install nsight-compute (from multiverse)", "sudo ubuntu-drivers install, then reboot"),
        *[
            (
                each,
                "sudo dnf install cuda-nsight-compute-13-0 (from NVIDIA's CUDA repository)",
                "sudo dnf install nvidia-open (from NVIDIA's CUDA repository), then reboot",
            )
            for each in ("rocky", "rhel", "amazon")
        ],
        ("leap", "sudo zypper install cuda-toolkit (from NVIDIA's CUDA repository)", ""),
        ("sles", "sudo zypper install cuda-toolkit (from NVIDIA's CUDA repository)", ""),
        ("arch", "sudo pacman -S nsight-compute", ""),
        ("nix", "conda install conda-forge::nsight-compute", ""),
        ("none", "conda install conda-forge::nsight-compute", ""),
    ],
)  # fmt: skip
def test_each_distribution_has_its_own_command(release: str, ncu: str, driver: str) -> None:
    assert command_for_ncu({}, lambda _: None, reader(release)) == ncu
    assert command_for_driver(reader(release)) == (driver and f"{driver} (in a container: docker run --gpus all …)")


def test_apt_says_which_of_nvidias_packages_there_are() -> None:
    names = "cuda-nsight-compute-12-9\ncuda-nsight-compute-13-10\ncuda-nsight-compute-13-2\n"
    found = command_for_ncu({}, lambda words: names if words[0] == "apt-cache" else None, reader("ubuntu"))
    assert found == "sudo apt-get install cuda-nsight-compute-13-10"


def test_a_conda_environment_needs_no_administrator() -> None:
    found = command_for_ncu({"CONDA_PREFIX": "/opt/conda"}, lambda _: None, reader("ubuntu"))
    assert found == "conda install conda-forge::nsight-compute"


@pytest.mark.parametrize("mark", ["/.dockerenv", "/run/.containerenv"])
def test_a_container_gets_its_driver_from_outside(mark: str) -> None:
    assert (
        command_for_driver(reader("ubuntu", mark=mark)) == "docker run --gpus all …, on a host with the NVIDIA driver"
    )


def test_the_doctor_gives_the_command_first() -> None:
    release = {"release": RELEASES["ubuntu"]}
    assert (
        checks(ncu=None, **release)["ncu"].fix == "sudo apt-get install nsight-compute (from multiverse); or install it"
    )
    assert checks(ncu=(2020, 1), **release)["ncu"].fix.startswith("sudo apt-get install nsight-compute")
    assert checks(smi=None, **release)["driver"].fix.startswith(
        "sudo ubuntu-drivers install, then reboot (in a container"
    )
    assert checks(smi="", **release)["driver"].fix.startswith("install the NVIDIA driver")  # it is there already


def test_what_ncuroof_ncu_hides_is_not_installed() -> None:
    assert checks(ncu=None, release=RELEASES["ubuntu"], named="/nowhere/ncu")["ncu"].fix == "install it"
