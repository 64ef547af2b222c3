"""The one command that installs ncu, or the NVIDIA driver, on this distribution.

Sources: conda-forge/nsight-compute-feedstock, which links ncu into the environment's bin; NVIDIA's CUDA installation guide for
zypper; packages.debian.org (nvidia-driver) and sources.debian.org (nvidia-cuda-toolkit, which holds nsight-compute); for the
others, what the set-up scripts of several public repositories install. Tried on none of the distributions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

_CONDA = "conda install conda-forge::nsight-compute"
_OF_NVIDIA = "from NVIDIA's CUDA repository"

_NCU = {
    "ubuntu": "sudo apt-get install nsight-compute (from multiverse)",
    "debian": "sudo apt-get install nsight-compute (from non-free)",
    "fedora": f"sudo dnf install cuda-nsight-compute-13-0 ({_OF_NVIDIA})",
    "suse": f"sudo zypper install cuda-toolkit ({_OF_NVIDIA})",
    "arch": "sudo pacman -S nsight-compute",
}
"""Command by distribution; those that derive from one of them name it (ID_LIKE in /etc/os-release)."""

_DRIVER = {
    "ubuntu": "sudo ubuntu-drivers install",
    "debian": "sudo apt-get install nvidia-driver (from non-free)",
    "fedora": f"sudo dnf install nvidia-open ({_OF_NVIDIA})",
}

_ALSO = {"rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse"}
"""Distributions that take the commands of another one, and do not always name it."""

_WITH_GPUS = "docker run --gpus all …"

_MARKS_OF_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman leave in every container."""

Run = Callable[[list[str]], str | None]
Read = Callable[[Path], str | None]


def command_for_ncu(environment: Mapping[str, str], run: Run, read: Read) -> str:
    """Return the command that installs ncu: into the active conda environment, else by the system's package manager.

    Args:
        environment: environment variables of the process.
        run: returns the output of a command, None if it fails.
        read: returns the text of a file, None if it cannot be read.
    """
    if environment.get("CONDA_PREFIX"):
        return _CONDA
    of_nvidia = (run(["apt-cache", "pkgnames", "cuda-nsight-compute-"]) or "").split()
    if of_nvidia:  # NVIDIA's repository is set up, and newer than the distribution
        return f"sudo apt-get install {max(of_nvidia, key=_version)}"
    return _of_distribution(_NCU, read) or _CONDA


def command_for_driver(read: Read) -> str:
    """Return the command that makes the driver available, empty where none is known; a container is started anew.

    Args:
        read: returns the text of a file, None if it cannot be read.
    """
    if any(read(mark) is not None for mark in _MARKS_OF_CONTAINERS):
        return f"{_WITH_GPUS}, on a host with the NVIDIA driver"
    command = _of_distribution(_DRIVER, read)
    return f"{command}, then reboot (in a container: {_WITH_GPUS})" if command else ""


def _of_distribution(commands: Mapping[str, str], read: Read) -> str:
    named = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', read(Path("/etc/os-release")) or "", re.MULTILINE))
    words = f"{named.get('ID', '')} {named.get('ID_LIKE', '')}".split()
    families = (_ALSO.get(word, word.partition("-")[0]) for word in words)
    return next((commands[family] for family in families if family in commands), "")


def _version(package: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", package)]
