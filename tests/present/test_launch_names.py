"""On the page, different kernels have different names: short ones, with the words in which the full names differ."""

from __future__ import annotations

from ncuroof.present.page.render import render_page
from ncuroof.present.view import launch_names
from tests.present.documents import document, kernel

AGENT = "void thrust::_kernel_agent<thrust::ReduceAgent<{}>>(int)"
MAX, MIN = AGENT.format("thrust::arg_max_f<float>"), AGENT.format("thrust::arg_min_f<float>")


def named(*names: str, short: str = "_kernel_agent") -> list[str]:
    return launch_names([launch(short, name) for name in names])


def launch(short: str | None, name: str | None) -> dict[str, object]:
    return {"short_name": short, "name": name, "device": 0, "block": [32, 1, 1], "grid": [1, 1, 1]}


def test_kernels_of_one_short_name_have_the_words_in_which_they_differ() -> None:
    assert named(MAX, MIN, MAX) == [
        "_kernel_agent · arg_max_f",
        "_kernel_agent · arg_min_f",
        "_kernel_agent · arg_max_f",
    ]
    assert named(MAX, MAX) == ["_kernel_agent", "_kernel_agent"]  # launches of one kernel
    assert launch_names([launch("a", MAX), launch("b", MIN)]) == ["a", "b"]
    assert launch_names([launch(None, None)] * 2) == ["(no name)", "(no name)"]


def test_launches_of_one_kernel_have_the_shapes_in_which_they_differ() -> None:
    narrow = {**launch("copy", "copy(int)"), "block": [16, 16, 1]}
    assert launch_names([launch("copy", "copy(int)"), narrow]) == ["copy · block 32", "copy · block 16×16"]


def test_long_names_are_cut_and_leave_room_for_what_differs() -> None:
    assert named(MAX, short="x" * 99) == ["x" * 79 + "…"]
    # 80 characters, of which " · arg_max_f" takes 12
    assert named(MAX, MIN, short="x" * 99) == ["x" * 67 + "… · arg_max_f", "x" * 67 + "… · arg_min_f"]
    # a first word for each pair, and a second one within it: both of 40 characters leave too little of the name
    a, b, c, d = "a" * 50, "b" * 50, "c" * 50, "d" * 50
    first, *_ = named(f"f<{a}, {c}>", f"f<{a}, {d}>", f"f<{b}, {c}>", f"f<{b}, {d}>", short="f")
    assert first == "f · " + "c" * 39 + "…"


def test_the_page_uses_them_in_its_table_and_in_what_has_most_time_above_the_roofline() -> None:
    launches = [kernel(id=number, short_name="_kernel_agent", name=name) for number, name in enumerate((MAX, MIN))]
    page = render_page(document(*launches))
    for number, name in enumerate(("_kernel_agent · arg_max_f", "_kernel_agent · arg_min_f")):
        assert f'<th scope="row" class="name text k-name"><a href="#k{number}"><bdi>{name}</bdi>' in page
        assert f'<p class="name"><a href="#k{number}"><bdi>{name}</bdi></a></p>' in page
