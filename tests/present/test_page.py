from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import get_type_hints

import pytest
from jinja2 import Environment, meta

from ncuroof.diagnosis import load_rules
from ncuroof.present.page import changes as page_changes
from ncuroof.present.page import context as page_context
from ncuroof.present.page import methods
from ncuroof.present.page import render as page
from ncuroof.present.page.kernel_detail import plain_message
from ncuroof.present.page.render import render_page
from ncuroof.present.sentences.collect_options import collect_options
from ncuroof.present.view import RunView, launch_rows, most_recoverable_first
from ncuroof.resources import folder
from tests.present.documents import (
    EMPTY_DOCUMENTS,
    HOSTILE,
    document,
    hostile_document,
    kernel,
    unknown_kernel,
    without_flop,
)


def unpacked(html):
    """Return the page's blocks of data by their id."""
    blocks = re.findall(r'<script type="application/octet-stream" id="([^"]+)">(.*?)</script>', html)
    return {name: json.loads(gzip.decompress(base64.b64decode(block))) for name, block in blocks}


def test_the_same_document_gives_the_same_text():
    assert render_page(document(kernel())) == render_page(document(kernel()))


def test_nothing_is_fetched():
    html = render_page(document(kernel()))
    assert not re.search(r"\b(src|srcset|action|poster|data)\s*=\s*[\"']?\s*(https?:|//)", html)
    assert set(re.findall(r'href="([^"]*)"', html)) <= {"data:,", "#k0"} | {
        f"#{name}" for name in ("summary", "roofline", "actions", "kernels", "methods", "verdicts")
    }
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_the_style_asks_for_no_newer_browser_than_the_script_does():
    # A declaration with a variable is taken as valid, so that one before it would not stand in.
    assert "color-mix(" not in (folder("templates") / page.STYLE).read_text(encoding="utf-8")


def test_the_policy_allows_the_scripts_of_the_page_and_no_other():
    html = render_page(hostile_document())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert len(scripts) == 1
    assert directives["default-src"] == "'none'"
    assert directives["script-src"].split() == [f"'sha256-{digest}'" for digest in sorted(digests, key=policy.index)]
    assert "connect-src" not in directives


def test_hostile_names_are_nowhere_markup():
    html = render_page(hostile_document())
    assert "<img" not in html
    assert "<!--" not in html
    assert html.count("<script") == html.count("</script>") == 4
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_a_lone_surrogate_can_be_written_to_a_file():
    assert b"\\ud800" in render_page(document(kernel(name="\ud800" * 20, short_name="\ud800"))).encode()


def test_hostile_names_reach_the_script_as_text():
    index = unpacked(render_page(hostile_document()))["index"]
    names = [index["texts"][number] for number in index["launches"]["name"]]
    assert names[0] == HOSTILE[0]
    assert names[4] == HOSTILE[4]
    assert names[5] == HOSTILE[5]
    assert names[3] == "\\u202egnitirw\\u202c \\u001b[31m\\u0000"


@pytest.mark.parametrize("name", EMPTY_DOCUMENTS)
def test_documents_that_know_nothing_render(name):
    html = render_page(EMPTY_DOCUMENTS[name])
    assert "None" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL).replace(
        "None:", ""
    )
    assert "NaN" not in json.dumps(unpacked(html))


def test_a_simulated_report_says_so():
    source = document()["sources"][0]
    sentence = "simulated report: written by ncuroof, not recorded on a GPU"
    assert sentence in render_page(document(kernel(), sources=[source | {"simulated": True}]))
    two = render_page(document(kernel(), sources=[source, source | {"file": "toy.ncu-rep", "simulated": True}]))
    assert 'simulated report <bdi class="name">toy.ncu-rep</bdi>: written by ncuroof, not recorded on a GPU' in two
    assert sentence not in render_page(document(kernel(), sources=[source]))
    assert sentence not in render_page(document(kernel()))


def test_a_launch_unlike_those_it_stands_for_says_what_it_took_and_what_they_take():
    stands = {"n_represented": 13.0, "weight": 3.9, "counted_average_ns": 13_440.0, "caveats": ["uneven_launches"]}
    ends = {"counted_shortest_ns": 5_800.0, "counted_longest_ns": 44_800.0}
    sentence = "This one took 44.9 µs; it represents 13 launches, 13.4 µs on average"
    for known, said in ((dict.fromkeys(ends), f"{sentence}."), (ends, f"{sentence}, from 5.80 µs to 44.8 µs.")):
        html = render_page(document(kernel(duration_ns=44_900.0, **stands, **known)))
        assert said in json.dumps(unpacked(html), ensure_ascii=False)


def test_damage_is_shown():
    source = document()["sources"][0] | {"damage": "3 of 9 blocks could not be read"}
    assert "3 of 9 blocks could not be read" in render_page(document(kernel(), sources=[source]))


def test_the_template_uses_what_the_context_explains_and_nothing_else():
    source = (folder("templates") / page.TEMPLATE).read_text(encoding="utf-8")
    used = meta.find_undeclared_variables(Environment(autoescape=True).parse(source))
    assert used == set(get_type_hints(page_context.PageContext)) | {"assets"}


@pytest.mark.parametrize(
    "context",
    [
        page_context.PageContext,
        page_context.SourceFacts,
        page_context.VerdictShare,
        page_context.KernelRow,
        page_context.LargestSavings,
        methods.Methods,
        page_changes.RunChanges,
        page_changes.ChangeLine,
        page.Assets,
    ],
)
def test_every_field_of_the_context_is_explained(context):
    for name, hint in get_type_hints(context, include_extras=True).items():
        assert hint.__metadata__[0], name


def test_kernels_come_by_recoverable_time_then_by_duration_with_the_unknown_last():
    kernels = [
        kernel(id=0, recoverable_ns=None, duration_ns=5.0),
        kernel(id=1, recoverable_ns=10.0),
        kernel(id=2, recoverable_ns=30.0),
        kernel(id=3, recoverable_ns=None, duration_ns=None),
        kernel(id=4, recoverable_ns=None, duration_ns=9.0),
    ]
    rows = most_recoverable_first(launch_rows(document(*kernels)))
    assert [row.position for row in rows] == [2, 1, 4, 0, 3]


def test_the_first_screen_names_the_kernels_with_the_most_recoverable_time():
    kernels = [kernel(id=number, recoverable_ns=float(number)) for number in range(5)]
    context = page_context.page_context(RunView(document(*kernels)), load_rules())
    assert [row.id for row in context.top_kernels] == [4, 3, 2]
    assert {row.where for row in context.top_kernels} == {
        "a.cu:7, called at b.cu:9 (70.0 %, waits for :5, called at b.cu:8) of the samples"
    }


def test_a_sum_that_nobody_knows_is_not_zero():
    context = page_context.page_context(RunView(document(unknown_kernel())), load_rules())
    assert dict(context.totals)["GPU time"] == "—"
    assert dict(context.totals)["above the roofline"] == "—"


def test_shares_of_time_are_parts_of_the_bar():
    # 300 µs and 100 µs: three quarters and one quarter.
    kernels = [kernel(duration_ns=300_000.0), kernel(id=1, duration_ns=100_000.0, verdict="compute")]
    shares = page_context.page_context(RunView(document(*kernels)), load_rules()).verdict_shares
    assert [(part.before_frac, part.share_frac, part.share) for part in shares] == [
        (0.0, 0.75, "75.0 %"),
        (0.75, 0.25, "25.0 %"),
    ]


def test_missing_counters_are_collected_by_one_line():
    options = [
        "--metrics a.sum,b.sum",
        "--section S",
        "--metrics b.sum (c.sum on chip 12.0)",
        "--section S",
        "--section T --section U",
    ]
    assert collect_options(options) == "--section S --section T --section U --metrics a.sum,b.sum"
    assert collect_options([]) == ""


def test_links_in_nvidias_messages_become_their_text():
    message = "See the @url:Guide:https://docs.example.com/a#b@ and @section:WarpStateStats:Warp State@."
    assert plain_message(message) == "See the Guide and Warp State."


def test_a_finding_says_where_waste_lands():
    part = unpacked(render_page(document(kernel())))["details-0"]
    (finding,) = part["kernels"][0]["findings"]
    assert finding["waste"] == [
        "6.00 MB at L1 (75.0 % of its traffic)",
        "1.50 MB at DRAM (25.0 % of its traffic)",
    ]


def test_a_disagreement_with_nvidias_rule_is_said_and_private_paths_are_not():
    html = render_page(document(kernel()))
    said = json.dumps(unpacked(html))
    assert "NVIDIA's Speed of Light rule reads this kernel as latency-bound, ncuroof as memory-bound" in said
    assert "/home/someone" not in html + said


def test_long_texts_are_stored_once_in_each_part():
    kernels = [kernel(id=number) for number in range(130)]
    blocks = unpacked(render_page(document(*kernels)))
    del blocks["explained-data"]
    assert list(blocks) == ["index", "details-0", "details-1", "details-2"]
    assert [len(blocks[f"details-{number}"]["kernels"]) for number in range(3)] == [64, 64, 2]
    for name, block in blocks.items():
        wanted = kernels[0]["name"] if name == "index" else "after it, L2 is the limit; a share of the duration"
        assert block["texts"].count(wanted) == 1


@pytest.mark.long
def test_a_further_kernel_adds_little_to_the_page():
    one, many = (len(render_page(document(*[kernel(id=number) for number in range(n)]))) for n in (100, 1100))
    assert (many - one) / 1000 < 400


def test_a_page_of_one_kernel_can_be_mailed():
    assert len(render_page(document(kernel()))) < 250_000


def test_dots_carry_what_the_document_says():
    index = unpacked(render_page(document(kernel(id=3), without_flop(id=4))))["index"]
    assert index["dots"]["flop"]["dram"] == {
        "x": [0.5, None],
        "y": [1e12, None],
        "precision": ["fp32", None],
        "roof": [0.8, None],
    }
    assert index["dots"]["flop"]["l1"]["x"] == [None, None]
    assert index["off"]["flop"] == [None, "no FLOPs"]


def test_launches_that_are_in_no_group_stand_by_themselves():
    failed = kernel(id=9, failed=True, verdict="unknown", duration_ns=None, recoverable_ns=None)
    index = unpacked(render_page(document(kernel(id=3), failed)))["index"]
    assert [(group["position"], group["launches"]) for group in index["groups"]] == [(0, [0]), (1, [1])]


def test_runs_of_one_name_are_told_apart_by_their_folders():
    assert page_changes.report_names("a/run.ncu-rep", "b/run.ncu-rep") == ["a/run.ncu-rep", "b/run.ncu-rep"]
    assert page_changes.report_names("a/new.ncu-rep", r"b\\old.ncu-rep") == ["new.ncu-rep", "old.ncu-rep"]


def test_reports_past_the_third_are_counted():
    source = document()["sources"][0]
    assert "more report" not in render_page(document(kernel(), sources=[source] * 3))
    assert "and 1 more report</p>" in render_page(document(kernel(), sources=[source] * 4))
    assert "and 2 more reports</p>" in render_page(document(kernel(), sources=[source] * 5))


def test_a_card_without_a_limiter_names_none():
    groups = document(kernel())["groups"]
    top = re.search(r'<ol class="top">.*?</ol>', render_page(document(kernel(limiter=None), groups=groups)), re.DOTALL)[
        0
    ]
    assert "—" not in top
    assert "memory-bound</span></p>" in top
