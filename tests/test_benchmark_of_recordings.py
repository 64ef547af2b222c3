"""The benchmark of recordings, which needs a GPU to run: what it prints of times and launches that are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import recording


def test_each_way_stands_beside_the_full_set_of_the_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(recording, "ncu", lambda: Path("ncu"))
    monkeypatch.setattr(recording.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(recording, "_seconds", lambda *_: 12.0)
    monkeypatch.setattr(recording, "_full_set", lambda _: (19.0, 2.0))
    found = recording.Recorded(94.9, n_launches=88, n_passes=2200, n_counted=321, covered_frac=1.0, replayed_frac=1.2)
    monkeypatch.setattr(recording, "_profile", lambda *_: found)
    recording.benchmark(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    # One launch takes 19 s, 320 more take 2 s each: 659 s, of which 94.9 s are 0.14.
    assert [line for line in lines if "--set full of the step" in line and "659 s" in line]
    of_ways = [line for line in lines if line.lstrip("| ").startswith("ncuroof profile, ")]
    assert len(of_ways) == len(recording.WAYS)
    assert all("0.14" in line and "2200" in line for line in of_ways)
