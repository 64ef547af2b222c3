"""`ncuroof calibrate`: measures the roofs that this machine's GPU reaches, and writes a file for `ncuroof report`."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof.cli.options import FileOrFolder, common, say
from ncuroof.cli.streams import echo
from ncuroof.errors import CalibrationError, MissingExtraError


@click.command()
@click.option(
    "-o",
    "--output",
    type=FileOrFolder(),
    default=Path("calibration.json"),
    show_default=True,
    help="File to write.",
)
@click.option(
    "--seconds", type=click.FloatRange(0.05, 60), default=0.5, show_default=True, help="Time to spend on each roof."
)
@click.option("--gpu", type=click.IntRange(0), default=0, show_default=True, help="CUDA device number of the GPU.")
@click.option("--force", is_flag=True, help="Overwrite a file that ncuroof did not write.")
@common("quiet")
def calibrate(
    *,
    output: Path,
    seconds: float,
    gpu: int,
    force: bool,
    quiet: bool,
) -> None:
    """Measure the roofs this GPU really reaches: DRAM, L2 and shared-memory bandwidth, and matrix products in each precision.

    ncuroof report --calibration FILE draws these roofs and shows how close launches come to them: in the summary for the
    run, on the page and in JSON for each kernel.
    """
    from ncuroof.present.output import check_place, write_whole  # noqa: PLC0415  loads polars, which --help does not need

    check_place(output, force=force)
    try:
        import torch  # noqa: PLC0415  an optional dependency, and slow to import
    except ImportError as error:
        raise MissingExtraError(
            f"ncuroof calibrate needs PyTorch: {error}", hint="pip install 'ncuroof[torch]'"
        ) from error
    if not torch.cuda.is_available() or gpu >= torch.cuda.device_count():
        found = f"{torch.cuda.device_count()} GPUs" if torch.cuda.is_available() else "no GPU that PyTorch can use"
        raise CalibrationError(
            f"expected GPU {gpu}, found {found}", hint="run this on the machine with the GPU; nvidia-smi lists its GPUs"
        )
    from ncuroof.collect.reachable_roofs import measure  # noqa: PLC0415
    from ncuroof.enums import Precision  # noqa: PLC0415
    from ncuroof.present.texts.hardware import to_text  # noqa: PLC0415
    from ncuroof.roofline import match_profile  # noqa: PLC0415
    from ncuroof.roofline.sheet_roofs import states_peak, without_impossible  # noqa: PLC0415
    from ncuroof.sidecars.calibration import calibration_json  # noqa: PLC0415

    torch.cuda.set_device(gpu)
    major, minor = torch.cuda.get_device_capability(gpu)
    measured = measure(
        torch,
        device=f"cuda:{gpu}",
        seconds=seconds,
        has_fp64_tensor_cores=states_peak(f"{major}.{minor}", Precision.TENSOR_FP64),
    )
    profile = match_profile(measured.gpu, measured.compute_capability, sm_count=measured.sm_count)
    calibration = without_impossible(measured, profile)
    write_whole(output, calibration_json(calibration), force=force)
    echo(to_text(calibration), nl=False)
    if not quiet:
        for name, reason in calibration.not_measured:
            say(f"not measured: {name}: {reason}")
