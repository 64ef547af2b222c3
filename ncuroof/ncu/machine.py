"""Find what this machine has: ncu and its version, nsys, GPUs and driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncuroof.errors import NcuNotFoundError
from ncuroof.ncu.settings import Version, capability_number, parse_version

GPU_QUERY = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version,mig.mode.current", "--format=csv,noheader"]
"""Command whose output `parse_gpus` reads."""

_UUID_QUERY = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]

VARIABLE = "NCUROOF_NCU"
_PATIENCE_S = 60.0
_NCU_ROOTS = (Path("/usr/local"), Path("/opt/nvidia/nsight-compute"))
_NSYS_ROOTS = (Path("/usr/local"), Path("/opt/nvidia/nsight-systems"))
_HINT = (
    "install NVIDIA Nsight Compute (part of the CUDA toolkit) and put ncu on PATH, or set NCUROOF_NCU to its path; "
    "to profile on another machine that has ncu: ncuroof profile --remote-plan FILE"
)


RECORDS_HERE = os.name == "posix"
"""Whether ncuroof can run ncu here, which takes POSIX terminals and signals. Reading reports works everywhere."""
NOT_HERE = (
    "recording needs Linux, this is Windows",
    "use WSL, write a script for a Linux machine with ncuroof profile --remote-plan FILE, or record with ncu itself; "
    "read its report here with ncuroof report run.ncu-rep",
)
"""Error message and hint if it cannot."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as nvidia-smi lists it.

    Attributes:
        name: product name.
        capability: compute capability as major × 10 + minor; None if nvidia-smi does not report it.
        driver: driver version.
        is_mig: MIG mode is enabled.
    """

    name: str
    capability: int | None
    driver: str
    is_mig: bool


def find_ncu(environment: Mapping[str, str], roots: Sequence[Path] = _NCU_ROOTS) -> Path:
    """Return the ncu to use: $NCUROOF_NCU, else the one on PATH, in $CUDA_HOME or $CUDA_PATH, else the newest installation.

    Args:
        environment: environment variables of the process.
        roots: folders in which toolkits (`cuda*`) and versions of Nsight Compute are installed.

    Raises:
        NcuNotFoundError: ncu is not installed, or NCUROOF_NCU does not name an executable.
    """
    named = environment.get(VARIABLE)
    if named:
        found = shutil.which(named, path=environment.get("PATH"))
        if found is None:
            raise NcuNotFoundError(f"{VARIABLE} is set to {named}, which is not an executable program", hint=_HINT)
        return Path(found)
    ncu = _find("ncu", environment, roots)
    if ncu is None:
        raise NcuNotFoundError("ncu not found, neither on PATH nor in a CUDA toolkit", hint=_HINT)
    return ncu


def find_nsys(environment: Mapping[str, str], roots: Sequence[Path] = _NSYS_ROOTS) -> Path | None:
    """Return the nsys (Nsight Systems) to use, from the same places except NCUROOF_NCU, or None.

    Args:
        environment: environment variables of the process.
        roots: folders in which toolkits (`cuda*`) and versions of Nsight Systems are installed.
    """
    return _find("nsys", environment, roots)


def _find(program: str, environment: Mapping[str, str], roots: Sequence[Path]) -> Path | None:
    on_path = shutil.which(program, path=environment.get("PATH", ""))
    if on_path is not None:
        return Path(on_path)
    homes = [Path(home) for home in (environment.get("CUDA_HOME"), environment.get("CUDA_PATH")) if home]
    toolkits = [folder for root in roots for folder in _newest_first(root)]
    places = [home / "bin" for home in homes] + [place for each in toolkits for place in (each / "bin", each)]
    candidates = (place / program for place in places)
    return next((each for each in candidates if os.access(each, os.X_OK) and each.is_file()), None)


def _newest_first(root: Path) -> list[Path]:
    try:
        folders = [folder for folder in root.iterdir() if folder.name.startswith("cuda") or folder.name[:1].isdigit()]
    except OSError:
        return []
    plain = [folder for folder in folders if folder.name == "cuda"]
    return plain + sorted(set(folders) - set(plain), key=lambda folder: parse_version(folder.name), reverse=True)


def ncu_version(ncu: Path) -> Version:
    """Return the version of an ncu.

    Raises:
        NcuNotFoundError: `ncu` does not run, or is a different program.
    """
    said = output_of([str(ncu), "--version"]) or ""
    match = re.search(r"Version (\d{4}(?:\.\d+)+)", said)
    if match is None:
        raise NcuNotFoundError(f"{ncu} is not a working ncu: --version prints no version of Nsight Compute", hint=_HINT)
    return parse_version(match[1])


def find_gpus(environment: Mapping[str, str]) -> tuple[Gpu, ...] | None:
    """Return the GPUs that nvidia-smi lists and that CUDA_VISIBLE_DEVICES does not hide; None if nvidia-smi is missing or fails.

    If it is not clear which GPUs CUDA_VISIBLE_DEVICES names, all GPUs are returned.

    Args:
        environment: environment variables of the process.
    """
    said = output_of(GPU_QUERY)
    if said is None:
        return None
    gpus = parse_gpus(said)
    if not environment.get("CUDA_VISIBLE_DEVICES"):  # saves another call of nvidia-smi, which may take seconds
        return gpus
    places = visible_places(environment, (output_of(_UUID_QUERY) or "").split())
    return gpus if places is None or max(places) >= len(gpus) else tuple(gpus[place] for place in places)


def visible_places(environment: Mapping[str, str], uuids: Sequence[str]) -> list[int] | None:
    """Return the indices, in nvidia-smi's list, of the GPUs that CUDA_VISIBLE_DEVICES names; None if it is empty or ambiguous.

    Numbers are clear only with CUDA_DEVICE_ORDER=PCI_BUS_ID: nvidia-smi numbers GPUs by bus, CUDA by default the fastest first. A
    UUID may be abbreviated.

    Args:
        environment: environment variables of the process.
        uuids: UUIDs of the GPUs, as nvidia-smi lists them.
    """
    is_by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    places = []
    for named in filter(None, (word.strip() for word in environment.get("CUDA_VISIBLE_DEVICES", "").split(","))):
        alike = [place for place, uuid in enumerate(uuids) if named.startswith("GPU-") and uuid.startswith(named)]
        alike += [place for place in range(len(uuids)) if is_by_bus and named == str(place)]
        if len(alike) != 1:
            return None
        places += alike
    return places or None


def parse_gpus(said: str) -> tuple[Gpu, ...]:
    """Return the GPUs in nvidia-smi's output, one per line; malformed lines are ignored."""
    gpus = []
    for line in said.splitlines():
        parts = [part.strip() for part in line.rsplit(",", 3)]
        if len(parts) != 4:
            continue
        name, capability, driver, mig = parts
        gpus.append(Gpu(name, capability_number(capability), driver, mig == "Enabled"))
    return tuple(gpus)


def output_of(command: Sequence[str]) -> str | None:
    """Return the standard output of a command; None if it does not exist, fails, or takes more than a minute."""
    try:
        done = subprocess.run(  # noqa: S603  no shell
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
