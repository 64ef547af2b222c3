"""Check whether this machine can profile; each check says what was found and how to fix it.

Missing software comes with the one command that installs it on this distribution. Sources: conda-forge/nsight-compute-feedstock,
which links ncu into the environment's bin; NVIDIA's CUDA installation guide for zypper; packages.debian.org (nvidia-driver) and
sources.debian.org (nvidia-cuda-toolkit, which holds nsight-compute); for the others, what the set-up scripts of several public
repositories install. Tried on none of the distributions.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ncuroof.enums import capability_text
from ncuroof.errors import NcuNotFoundError
from ncuroof.ncu.machine import (
    GPU_QUERY,
    NOT_HERE,
    RECORDS_HERE,
    VARIABLE,
    Gpu,
    find_ncu,
    find_nsys,
    ncu_version,
    output_of,
    parse_gpus,
)
from ncuroof.ncu.settings import Settings, Version, version_text

OK, WARNING, FAILED, UNKNOWN = "ok", "warning", "failed", "unknown"
PERMISSION = "counter permission"

_PROC = Path("/proc")
_SYS_ADMIN, _PERFMON = 21, 38
"""Linux capabilities that let a process read counters (numbers of linux/capability.h)."""

_PERMISSION_FIX = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/ncuroof.conf, "
    "then sudo update-initramfs -u (or sudo dracut -f) and reboot; "
    "in a container: docker run --cap-add=SYS_ADMIN --gpus all … (Kubernetes: securityContext.capabilities.add: [SYS_ADMIN]); "
    "on a cluster: ask the administrators for either, or for nodes that allow profiling (often srun --constraint=nvperf)"
)
_NEWER_NCU = (
    "install the Nsight Compute of a CUDA toolkit that supports this GPU, or point NCUROOF_NCU to its ncu; "
    "ncu --list-chips lists the chips that an ncu supports"
)
_ANY_DRIVER = "install the NVIDIA driver (in a container: docker run --gpus all …)"
_ELSEWHERE = (
    "profile on another machine: ncuroof profile --remote-plan FILE writes a script for it, "
    "ncuroof report run.ncu-rep reads its report here"
)

_CONDA = "conda install conda-forge::nsight-compute"
_OF_NVIDIA = "from NVIDIA's CUDA repository"

_NCU = {
    "ubuntu": "sudo apt-get install nsight-compute (from multiverse)",
    "debian": "sudo apt-get install nsight-compute (from non-free)",
    "fedora": f"sudo dnf install cuda-nsight-compute-13-0 ({_OF_NVIDIA})",
    "suse": f"sudo zypper install cuda-toolkit ({_OF_NVIDIA})",
    "arch": "sudo pacman -S nsight-compute",
}
"""Command by distribution. Derived distributions name their origin (ID_LIKE in /etc/os-release)."""

_DRIVER = {
    "ubuntu": "sudo ubuntu-drivers install",
    "debian": "sudo apt-get install nvidia-driver (from non-free)",
    "fedora": f"sudo dnf install nvidia-open ({_OF_NVIDIA})",
}

_ALSO = {"rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse"}
"""Distributions that use the commands of a different one, but do not always name it."""

_WITH_GPUS = "docker run --gpus all …"

_MARKS_OF_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman leave in every container."""

Run = Callable[[list[str]], str | None]
Read = Callable[[Path], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that profiling needs.

    Attributes:
        name: what is checked.
        state: ok, warning, failed or unknown.
        found: what was found.
        fix: what to do about it; empty if nothing.
    """

    name: str
    state: str
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How the checks reach the machine; tests replace it.

    Attributes:
        environment: environment variables of the process.
        run: returns the output of a command, None if it fails.
        read: returns the text of a file, None if it cannot be read.
        find: returns the ncu to use, or raises NcuNotFoundError.
        find_nsys: returns the nsys to use, or None.
        version: returns the version of an ncu, or raises NcuNotFoundError.
        user_id: effective user ID; -1 if the system has no user IDs.
        records_here: whether ncuroof can run ncu on this system.
    """

    environment: Mapping[str, str]
    run: Run
    read: Read
    find: Callable[[Mapping[str, str]], Path]
    find_nsys: Callable[[Mapping[str, str]], Path | None]
    version: Callable[[Path], Version]
    user_id: int
    records_here: bool = RECORDS_HERE


def this_machine() -> Surroundings:
    """Return the surroundings of this process."""
    user_id = os.geteuid() if hasattr(os, "geteuid") else -1
    return Surroundings(os.environ, output_of, _read, find_ncu, find_nsys, ncu_version, user_id)


def examine(machine: Surroundings, settings: Settings) -> tuple[Check, ...]:
    """Run all checks, in the order in which things have to work."""
    if not machine.records_here:
        return (Check("system", FAILED, *NOT_HERE),)
    gpus = _gpus(machine)
    return (
        _ncu(machine, settings),
        _driver(gpus, machine),
        *_devices(gpus or (), _chips(machine), settings),
        _permission(machine, has_gpu=bool(gpus)),
        _other_profilers(machine, has_gpu=bool(gpus)),
        *_wsl(machine),
        _space(machine),
        _nsys(machine),
    )


def can_profile(checks: tuple[Check, ...]) -> bool:
    """Return whether no check has failed."""
    return all(check.state != FAILED for check in checks)


def _ncu(machine: Surroundings, settings: Settings) -> Check:
    try:
        path = machine.find(machine.environment)
        version = machine.version(path)
    except NcuNotFoundError as error:
        return Check("ncu", FAILED, str(error), _fix_of_ncu(machine, error.hint or ""))
    said = f"{path}, version {version_text(version)}"
    if version < settings.oldest_ncu:
        fix = _fix_of_ncu(machine, "install a newer Nsight Compute, or point NCUROOF_NCU to a newer ncu")
        return Check("ncu", FAILED, f"{said}: ncu {version_text(settings.oldest_ncu)} or later is needed", fix)
    return Check("ncu", OK, said)


def _fix_of_ncu(machine: Surroundings, alternative: str) -> str:
    """Return how to get ncu: the command that installs it, unless NCUROOF_NCU would hide the installed ncu, and an alternative."""
    if machine.environment.get(VARIABLE):
        return alternative
    return f"{command_for_ncu(machine.environment, machine.run, machine.read)}; or {alternative}"


def _nsys(machine: Surroundings) -> Check:
    path = machine.find_nsys(machine.environment)
    missing = "not found; optional: it counts the launches of programs that are not PyTorch scripts"
    return Check("nsys", OK, missing if path is None else str(path))


def _gpus(machine: Surroundings) -> tuple[Gpu, ...] | None:
    said = machine.run(GPU_QUERY)
    return None if said is None else parse_gpus(said)


def _driver(gpus: tuple[Gpu, ...] | None, machine: Surroundings) -> Check:
    if not gpus:
        found = "nvidia-smi is missing or fails" if gpus is None else "nvidia-smi lists no GPU"
        command = command_for_driver(machine.read) if gpus is None else ""  # otherwise the driver is installed
        return Check("driver", FAILED, found, f"{command or _ANY_DRIVER}; or {_ELSEWHERE}")
    return Check("driver", OK, f"version {gpus[0].driver}")


def _chips(machine: Surroundings) -> frozenset[str]:
    """Return the chips that ncu supports; empty if ncu is missing or does not list them."""
    try:
        said = machine.run([str(machine.find(machine.environment)), "--list-chips"])
    except NcuNotFoundError:
        return frozenset()
    return frozenset(re.findall(r"\w+", said or ""))


def _devices(gpus: tuple[Gpu, ...], chips: frozenset[str], settings: Settings) -> list[Check]:
    checks = [check for number, gpu in enumerate(gpus) for check in _device(f"GPU {number}", gpu, chips, settings)]
    if all(check.state == FAILED for check in checks):
        return checks
    return [
        replace(check, state=WARNING) if check.state == FAILED else check for check in checks
    ]  # a different GPU works


def _device(name: str, gpu: Gpu, chips: frozenset[str], settings: Settings) -> list[Check]:
    if gpu.capability is None:
        return [Check(name, UNKNOWN, f"{gpu.name}, compute capability not reported")]
    mig = Check(
        f"{name}, MIG",
        WARNING,
        "MIG instances: units that they share cannot be counted, and clocks cannot be locked",
        "keep --clock-control none; if DRAM counters are missing, profile on a whole GPU",
    )
    return [_support(name, gpu.name, gpu.capability, chips, settings), *([mig] if gpu.is_mig else [])]


def _support(name: str, product: str, capability: int, chips: frozenset[str], settings: Settings) -> Check:
    """Check whether Nsight Compute, this ncu and ncuroof know the chip."""
    said = f"{product}, compute capability {capability_text(capability)}"
    if capability < settings.oldest_capability:
        oldest = capability_text(settings.oldest_capability)
        return Check(name, FAILED, f"{said}: Nsight Compute supports {oldest} and later", _ELSEWHERE)
    if chips and capability in settings.chips and settings.chips[capability] not in chips:
        return Check(name, FAILED, f"{said}: this ncu does not support it", _NEWER_NCU)
    if capability not in settings.capabilities:
        return Check(
            name,
            WARNING,
            f"{said}: ncuroof has no counter list for it",
            "only counters that every listed chip has are collected; --level full collects NVIDIA's own sets",
        )
    return Check(name, OK, said)


def _permission(machine: Surroundings, *, has_gpu: bool) -> Check:
    """Check whether this process may read counters: by the driver's parameter, or by a privilege that overrides it."""
    restricted = re.search(r"RmProfilingAdminOnly:\s*(\d)", machine.read(_PROC / "driver/nvidia/params") or "")
    if restricted is not None and restricted[1] == "0":
        return Check(PERMISSION, OK, "open to every user")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", machine.read(_PROC / "self/status") or "", re.MULTILINE)
    held = int(capabilities[1], 16) if capabilities else 0
    is_privileged = bool(held >> _SYS_ADMIN & 1 or held >> _PERFMON & 1)
    if is_privileged or (capabilities is None and machine.user_id == 0):
        return Check(PERMISSION, OK, "this process has the privilege (CAP_SYS_ADMIN or CAP_PERFMON)")
    if restricted is None:
        return Check(
            PERMISSION,
            UNKNOWN,
            "the driver's parameters (/proc/driver/nvidia/params) cannot be read",
            _PERMISSION_FIX if has_gpu else "",
        )
    return Check(PERMISSION, FAILED, "restricted to administrators (ERR_NVGPUCTRPERM)", _PERMISSION_FIX)


def _other_profilers(machine: Surroundings, *, has_gpu: bool) -> Check:
    """Look for programs that may hold the counters: DCGM, Nsight Systems, nvprof, another ncu."""
    name = "other profilers"
    if not has_gpu:
        return Check(name, UNKNOWN, "not checked without a GPU")
    running = machine.run(["ps", "-eo", "comm="])
    if running is None:
        return Check(name, UNKNOWN, "ps does not work here, so running profilers cannot be seen")
    found = sorted(
        {word for word in running.split() if re.fullmatch(r"nv-hostengine|dcgm-exporter|nsys|ncu|nvprof", word)}
    )
    if not found:
        return Check(name, OK, "none running (outside a container, one would not be seen)")
    dcgm = any(word in ("nv-hostengine", "dcgm-exporter") for word in found)
    fix = "dcgmi profile --pause, and dcgmi profile --resume afterwards" if dcgm else "wait until it ends, or stop it"
    return Check(name, WARNING, f"{', '.join(found)} running, and may hold the counters", fix)


def _wsl(machine: Surroundings) -> list[Check]:
    if "microsoft" not in (machine.read(_PROC / "version") or "").lower():
        return []
    return [
        Check(
            "WSL",
            WARNING,
            "Windows Subsystem for Linux: the Windows driver controls counter access",
            "in the NVIDIA Control Panel of Windows: Desktop > Enable Developer Settings, "
            "then Developer > Manage GPU Performance Counters > Allow access to all users",
        )
    ]


def _space(machine: Surroundings) -> Check:
    name, fix = "temporary files", "set TMPDIR to a folder of your own"
    folder = machine.environment.get("TMPDIR") or "/tmp"  # noqa: S108  where ncu keeps its lock and its temporary files
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(name, FAILED, f"{folder}: {error.strerror}", fix)
    said = f"{folder}, {free_bytes / 1e9:.1f} GB free"
    if not os.access(folder, os.W_OK):
        return Check(name, FAILED, f"{said}, not writable", fix)
    if free_bytes < 1e9:
        more = "application replay and large reports need more: set TMPDIR to a folder with more space"
        return Check(name, WARNING, said, more)
    return Check(name, OK, said)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def command_for_ncu(environment: Mapping[str, str], run: Run, read: Read) -> str:
    """Return the command that installs ncu: into the active conda environment, or else with the system's package manager.

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
    """Return the command that installs the driver, or, in a container, starts the container with it; empty if unknown.

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
