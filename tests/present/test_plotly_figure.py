from __future__ import annotations

import json
import math
import re
import sys

import pytest
from plotly.graph_objects import Figure

import ncuroof
from ncuroof.errors import MissingExtraError, UnknownNameError
from ncuroof.present.charts.plotly_figure import roofline_figure
from ncuroof.resources import folder
from tests.present.documents import (
    CEILINGS,
    EMPTY_DOCUMENTS,
    ceiling,
    document,
    hostile_document,
    kernel,
    unknown_kernel,
    without_flop,
)
from tests.support import demo


def drawn(*args, **kwargs):
    """Return the figure of a document as plain data: what a notebook or a picture is made from."""
    return json.loads(roofline_figure(*args, **kwargs).to_json())


def dots(figure):
    return [trace for trace in figure["data"] if trace["mode"] == "markers"]


def roofs(figure):
    return [trace for trace in figure["data"] if trace["mode"] == "lines"]


def labels(figure):
    return [annotation["text"] for annotation in figure["layout"]["annotations"]]


def subtitle(figure):
    return figure["layout"]["title"]["subtitle"]["text"]


def launch(number, rate, **changes):
    """Return a launch with this many FLOP/s at DRAM."""
    return kernel(id=number, points=[kernel()["points"][0] | {"flop_per_s": rate}], **changes)


def group(first, n_launches, duration_ns=1e5):
    launches = list(range(first, first + n_launches))
    return document(kernel(id=first))["groups"][0] | {
        "launches": launches,
        "n_launches": n_launches,
        "duration_ns": duration_ns,
    }


# ---- dots ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "x", "y"),
    [
        ({}, 0.5, 1e12),
        ({"level": "l2"}, 0.25, 1e12),
        ({"view": "instruction"}, 0.8, 5e10),
        ({"view": "instruction", "level": "l2"}, 0.4, 5e10),
    ],
)
def test_a_dot_lies_at_its_intensity_and_rate(chosen, x, y):
    (trace,) = dots(drawn(document(kernel()), **chosen))
    assert (trace["x"], trace["y"]) == ([x], [y])


def test_the_first_level_with_dots_is_taken():
    l2 = kernel(points=[kernel()["points"][1]])
    figure = drawn(document(l2))
    assert dots(figure)[0]["x"] == [0.25]
    assert subtitle(figure) == "Bytes counted at L2"


def test_equal_launches_are_one_dot_at_the_longest():
    launches = [launch(0, 1e12), launch(1, 0.5e12, duration_ns=2e5), launch(2, 1e12)]
    (trace,) = dots(drawn(document(*launches, groups=[group(1, 3, 4e5)])))
    assert (trace["customdata"], trace["y"]) == ([1], [0.5e12])


def test_a_launch_with_a_dot_stands_in_for_the_longest_without():
    launches = [kernel(id=0, points=[], duration_ns=3e5), launch(1, 1e12), launch(2, 1e12, duration_ns=2e5)]
    figure = drawn(document(*launches, groups=[group(0, 3)]))
    assert dots(figure)[0]["customdata"] == [2]
    assert subtitle(figure) == "Bytes counted at DRAM"


def test_the_size_is_that_of_the_time_of_all_launches():
    launches = [kernel(id=0), *(kernel(id=number, name="other") for number in range(1, 5))]
    groups = [group(0, 1, 100.0), group(1, 4, 25.0)]
    (trace,) = dots(drawn(document(*launches, groups=groups)))
    # From 9 to 27 px with the root of the time: a quarter of it is half of the way.
    assert trace["marker"]["size"] == [27, 18]


def test_error_bars_reach_from_the_lowest_to_the_highest_rate():
    launches = [launch(0, 1e12, duration_ns=2e5), launch(1, 1.25e12), launch(2, 0.75e12), launch(3, 2e12, name="other")]
    (trace,) = dots(drawn(document(*launches, groups=[group(0, 3), group(3, 1)])))
    assert (trace["error_y"]["array"], trace["error_y"]["arrayminus"]) == ([0.25e12, 0], [0.25e12, 0])
    assert trace["error_y"]["symmetric"] is False
    assert "750 GFLOP/s to 1.25 TFLOP/s over its launches" in trace["hovertext"][0]


def test_launches_that_hardly_differ_have_no_error_bars():
    launches = [launch(0, 1e12), launch(1, 1.04e12)]
    (trace,) = dots(drawn(document(*launches, groups=[group(0, 2)])))
    assert "error_y" not in trace


def test_launches_that_are_not_all_known_have_no_error_bars():
    (trace,) = dots(drawn(document(launch(0, 1e12), launch(1, 2e12), groups=[group(0, 3)])))
    assert "error_y" not in trace


def test_the_spread_is_that_of_the_precision_of_the_dot():
    point = kernel()["points"][0]
    both = [point | {"flop_per_s": 1e12}, point | {"precision": "fp64", "flop_per_s": 5e11}]
    launches = [kernel(id=number, points=both, dominant_precision="fp32") for number in (0, 1)]
    (trace,) = dots(drawn(document(*launches, groups=[group(0, 2)])))
    assert (trace["y"], "error_y" in trace) == ([1e12], False)


def test_what_is_told_of_a_group():
    launches = [launch(0, 1e12), launch(1, 1e12)]
    times = {"min_duration_ns": 1e5, "max_duration_ns": 3e5, "duration_cv": 0.5}
    doc = document(*launches, kernel(id=2, name="other", duration_ns=6e5))
    (trace,) = dots(drawn(doc | {"groups": [group(0, 2, 2e5) | times]}))
    # 200 of 800 µs; rate over roof is 1 of 1.25 TFLOP/s.
    assert trace["hovertext"][0].split("<br>") == [
        "#0 saxpy",
        "2 launches, 100 µs to 300 µs each (±50.0 %), 200 µs in all, 25.0 % of the run",
        "memory-bound, DRAM",
        "DRAM, FP32: 0.500 FLOP/B, 1.00 TFLOP/s, 80.0 % of its roof",
    ]


def test_groups_without_a_dot_are_counted():
    figure = drawn(document(kernel(), without_flop(id=1, name="copy"), unknown_kernel(id=2)))
    assert subtitle(figure) == "Bytes counted at DRAM · 1 of 2 groups of equal launches without a dot"


def test_a_device_has_its_own_dots_and_roofs():
    doc = document(
        kernel(),
        launch(1, 2e12, device=1),
        devices=document()["devices"] * 2,
        ceilings=[*CEILINGS, ceiling("bandwidth", "dram", 1e12, device=1)],
    )
    figure = drawn(doc, device=1)
    assert (dots(figure)[0]["customdata"], labels(figure)) == ([1], ["DRAM 1.00 TB/s"])
    assert figure["layout"]["title"]["text"] == "FLOP roofline: GPU 1: NVIDIA Imaginary"


# ---- marks -----------------------------------------------------------------------------------------------------------

MARKS = {
    "memory": ("memory-bound", "#0072b2", "circle"),
    "compute": ("compute-bound", "#d55e00", "square"),
    "balanced": ("balanced", "#b9609a", "diamond"),
    "latency": ("latency-bound", "#bf7f00", "triangle-up"),
    "overhead": ("overhead-bound", "#009e73", "triangle-down"),
    "unknown": ("unknown", "#7d868f", "x"),
}


def test_each_verdict_is_a_trace_with_its_colour_and_symbol():
    figure = drawn(document(*(kernel(id=number, verdict=verdict) for number, verdict in enumerate(reversed(MARKS)))))
    marks = [(trace["name"], trace["marker"]["color"], trace["marker"]["symbol"]) for trace in dots(figure)]
    assert marks == list(MARKS.values())


def test_colours_are_those_of_the_page():
    style = (folder("templates") / "page.css").read_text(encoding="utf-8").partition("}")[0]
    assert {name: colour for name, colour in re.findall(r"--(\w+): (#\w+);", style) if name in MARKS} == {
        name: colour for name, (_, colour, _) in MARKS.items()
    }


# ---- axes and roofs --------------------------------------------------------------------------------------------------


def test_axes_are_logarithmic_with_round_ticks():
    layout = drawn(document(kernel()))["layout"]
    for axis, value, label in (("xaxis", 0.1, "0.1"), ("yaxis", 1e12, "1 TFLOP/s"), ("yaxis", 2e12, "")):
        ticks = dict(zip(layout[axis]["tickvals"], layout[axis]["ticktext"], strict=True))
        assert (layout[axis]["type"], layout[axis]["tickmode"], ticks[value]) == ("log", "array", label)
    # Dots at 0.25 and 0.5 FLOP/B, ridges up to 4.8 FLOP/B, and room by a factor of 3: 0.0833 to 14.4, made three decades.
    low, high = layout["xaxis"]["range"]
    assert (low < math.log10(0.0833), high > math.log10(14.4), high - low) == (True, True, pytest.approx(3, abs=1e-3))


def test_roofs_are_slopes_up_to_the_peak_and_peaks_from_the_ridge():
    by_label = {trace["hovertext"]: trace for trace in roofs(drawn(document(kernel())))}
    dram, fp32 = by_label["DRAM 2.50 TB/s"], by_label["FP32 10.0 TFLOP/s"]
    # 1e13 FLOP/s over 2.5e12 B/s, and over 5e12 B/s of L2
    assert (dram["x"][1], dram["y"][1]) == (4.0, 1e13)
    assert (fp32["x"][0], fp32["y"]) == (2.0, [1e13, 1e13])


def test_roofs_of_the_data_sheet_are_dashed_and_wait_in_the_legend():
    traces = roofs(drawn(document(kernel())))
    shown = [(each["hovertext"], each["line"].get("dash"), each.get("visible"), each["showlegend"]) for each in traces]
    assert shown == [
        ("DRAM 2.50 TB/s", None, None, False),
        ("L2 5.00 TB/s", None, None, False),
        ("FP32 10.0 TFLOP/s", None, None, False),
        ("DRAM datasheet 3.00 TB/s", "dash", "legendonly", True),
        ("FP32 datasheet 12.0 TFLOP/s", "dash", "legendonly", False),
    ]
    assert [each["name"] for each in traces if each["showlegend"]] == ["roofs of the datasheet"]
    assert {each["legendgroup"] for each in traces[3:]} == {"datasheet"}


def test_a_roof_that_no_counter_gives_is_drawn_dashed_and_labelled():
    ceilings = [ceiling("bandwidth", "dram", 2.5e12, "datasheet"), ceiling("compute", "fp32", 1e13)]
    figure = drawn(document(kernel(), ceilings=ceilings))
    (sheet,) = (trace for trace in roofs(figure) if trace["hovertext"] == "DRAM datasheet 2.50 TB/s")
    assert (sheet["line"]["dash"], "visible" in sheet) == ("dash", False)
    assert labels(figure) == ["DRAM datasheet 2.50 TB/s", "FP32 10.0 TFLOP/s"]


def test_labels_lie_along_the_roofs_that_are_drawn():
    figure = drawn(document(kernel()))
    dram, l2, fp32 = figure["layout"]["annotations"]
    assert [each["text"] for each in (dram, l2, fp32)] == ["DRAM 2.50 TB/s", "L2 5.00 TB/s", "FP32 10.0 TFLOP/s"]
    assert dram["y"] - dram["x"] == pytest.approx(math.log10(2.5e12))
    assert fp32["y"] == pytest.approx(13)
    # Both axes are three decades: 960 - 90 - 20 px wide, 600 - 105 - 55 px high; atan(440 / 850) = 27.4°.
    assert (dram["textangle"], fp32["textangle"]) == (pytest.approx(-27.4, abs=0.05), 0)


# ---- texts -----------------------------------------------------------------------------------------------------------


def strings(value):
    """Yield every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


@pytest.mark.parametrize("view", ["flop", "instruction"])
def test_texts_of_a_report_are_neither_markup_nor_formulas(view):
    figure = drawn(hostile_document(), view=view)
    for each in strings(figure):
        assert not re.search(r"[<>$\x00-\x1f\u202a-\u202e]", each.replace("<br>", "")), each
        assert not re.search(r"&(?!(amp|lt|gt|#36);)", each)
    (trace,) = dots(figure)
    assert trace["hovertext"][0].startswith("#0 &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;<br>one launch")
    assert trace["hovertext"][2].startswith(
        "#2 {{ 7 * 7 }} &#36;{7*7} %{x} &lt;b&gt;bold&lt;/b&gt; &amp;lt;i&amp;gt;<br>"
    )
    assert "hovertemplate" not in trace


def test_names_are_cut_to_fit():
    named = [(name, short) for name, short in (("x" * 500, ""), ("", ""), ("f(int)", "f"))]
    kernels = [kernel(id=number, name=name, short_name=short) for number, (name, short) in enumerate(named)]
    (trace,) = dots(drawn(document(*kernels)))
    first = [hover.split("<br>")[0] for hover in trace["hovertext"]]
    assert first == ["#0 " + "x" * 79 + "…", "#1 (no name)", "#2 f"]


def test_a_simulated_report_is_called_so():
    source = document()["sources"][0] | {"simulated": True}
    for kernels in ([kernel()], []):
        text = subtitle(drawn(document(*kernels, sources=[source])))
        assert text.startswith("simulated: written by ncuroof, not recorded on a GPU")


# ---- nothing to draw, and wrong arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["flop", "instruction"])
@pytest.mark.parametrize("name", EMPTY_DOCUMENTS)
def test_a_document_with_little_in_it_gives_dots_or_a_reason(name, view):
    figure = drawn(EMPTY_DOCUMENTS[name], view=view)
    assert dots(figure) or labels(figure)[0].startswith("There is no chart")


@pytest.mark.parametrize(
    ("doc", "chosen", "reason"),
    [
        (document(without_flop()), {}, "no kernel of this GPU has FLOPs and bytes that were both counted."),
        (
            document(kernel(instructions=None)),
            {"view": "instruction"},
            "no kernel of this GPU has instructions and bytes",
        ),
        (EMPTY_DOCUMENTS["no devices"], {}, "There is no chart: no GPU is known."),
        (
            document(kernel()),
            {"level": "shared"},
            "at shared no kernel of this GPU has a dot. There are dots at DRAM, L2.",
        ),
        (
            document(without_flop()),
            {"level": "l2"},
            "no kernel of this GPU has FLOPs and bytes that were both counted.",
        ),
    ],
)
def test_a_figure_without_dots_says_why(doc, chosen, reason):
    figure = drawn(doc, **chosen)
    (label,) = labels(figure)
    assert reason in label
    assert (figure["data"], figure["layout"]["xaxis"]["visible"]) == ([], False)


@pytest.mark.parametrize(
    ("chosen", "message", "hint"),
    [
        ({"view": "flops"}, "there is no view 'flops' to draw", "use one of: flop, instruction"),
        ({"view": None}, "there is no view None to draw", "use one of: flop, instruction"),
        ({"level": "L3"}, "there is no memory level 'L3' to draw", "use one of: dram, l2, l1, shared"),
        ({"level": ""}, "there is no memory level '' to draw", "use one of: dram, l2, l1, shared"),
        ({"device": 2}, "there is no device 2 to draw", "use one of: 0, 1"),
        ({"device": -1}, "there is no device -1 to draw", "use one of: 0, 1"),
        ({"device": "NVIDIA H200"}, "there is no device 'NVIDIA H200' to draw", "use one of: 0, 1"),
    ],
)
def test_a_wrong_argument_is_named(chosen, message, hint):
    with pytest.raises(UnknownNameError) as raised:
        roofline_figure(document(kernel(), devices=document()["devices"] * 2), **chosen)
    assert (str(raised.value), raised.value.hint) == (message, hint)


def test_without_plotly_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError) as raised:
        roofline_figure(document(kernel()))
    assert raised.value.hint == "pip install 'ncuroof[plot]'"


# ---- of an analysis --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_analysis_has_a_figure_that_notebooks_show():
    analysis = ncuroof.read(demo.REPORT).analyse()
    figure = analysis.roofline()
    assert isinstance(figure, Figure)
    assert hasattr(figure, "_repr_mimebundle_")
    # 17 kernels, no two of them equal, and one that failed to profile
    text = subtitle(drawn(analysis.to_dict()))
    n_without = int(re.search(r"(\d+) of 16 groups", text)[1])
    assert sum(len(trace["x"]) for trace in dots(json.loads(figure.to_json()))) == 16 - n_without
    assert "Transactions counted at L2" in analysis.roofline(view="instruction", level="l2").layout.title.subtitle.text


@pytest.mark.long
def test_the_launches_of_a_group_are_found_again():
    raw = ncuroof.read(demo.REPORT).raw
    analysis = ncuroof.Reports(raw * 3).analyse()
    assert set(analysis.groups["n_launches"]) == {3}
    slower = analysis.to_dict()
    for entry in slower["kernels"][: len(slower["kernels"]) // 3]:
        for point in entry["points"]:
            point["flop_per_s"] /= 2
    for trace in dots(drawn(slower)):
        rates = zip(trace["y"], trace["error_y"]["array"], trace["error_y"]["arrayminus"], strict=True)
        for rate, above, below in rates:
            assert (above, below) in [(pytest.approx(rate), 0), (0, pytest.approx(rate / 2))]
