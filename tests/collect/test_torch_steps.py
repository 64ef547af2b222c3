"""Which calls are steps, and that what is counted stays what it was."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ncuroof.collect.runner.steps import Window, count_steps


class BoundAsCompilersDo:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return functools.partial(self.function, instance)


class Base:
    @classmethod
    def made(cls) -> str:
        return cls.__name__


class Trainer(Base):
    limit = 3

    @staticmethod
    def twice(number: int) -> int:
        return 2 * number

    partly = functools.partial(pow, exp=2)
    bound = BoundAsCompilersDo(lambda self: self.rate)

    def itself(self) -> Trainer:
        return self

    @property
    def rate(self) -> float:
        """How fast."""
        return 0.5

    def batches(self) -> Iterator[int]:
        yield from (1, 2)

    async def waits(self) -> int:
        return 4

    def hands_on(self) -> Any:
        return self.waits()

    async def streams(self) -> Any:
        yield 1


MODULE = SimpleNamespace(__name__="pkg", Trainer=Trainer, train=lambda: 7)


@pytest.fixture
def events() -> list[tuple[str, dict[str, object]]]:
    return []


def count(name: str, events: list[Any]) -> Any:
    """Return a module whose calls of `name` are counted."""
    journal: Any = SimpleNamespace(tell=lambda event, **more: events.append((event, more)))
    window = Window((1, 99), stops_after=False, tools=[], journal=journal, when_cuda_begins=lambda _: None)
    trainer = type("Trainer", (Base,), dict(Trainer.__dict__))
    module = SimpleNamespace(**{**vars(MODULE), "Trainer": trainer})
    count_steps(f"pkg:{name}", window, lambda _, call: call(module))
    return module


@pytest.mark.parametrize(
    ("name", "call", "result"),
    [
        ("train", lambda module: module.train(), 7),
        ("Trainer.twice", lambda module: module.Trainer.twice(4), 8),
        ("Trainer.twice", lambda module: module.Trainer().twice(4), 8),
        ("Trainer.made", lambda module: module.Trainer.made(), "Trainer"),
        ("Trainer.rate", lambda module: module.Trainer().rate, 0.5),
        ("Trainer.batches", lambda module: list(module.Trainer().batches()), [1, 2]),
        ("Trainer.waits", lambda module: asyncio.run(module.Trainer().waits()), 4),
        ("Trainer.hands_on", lambda module: asyncio.run(module.Trainer().hands_on()), 4),
        ("Trainer.partly", lambda module: module.Trainer().partly(3), 9),
        ("Trainer.bound", lambda module: module.Trainer().bound(), 0.5),
        ("Trainer.itself", lambda module: type(module.Trainer().itself()).__name__, "Trainer"),
    ],
)
def test_a_call_is_a_step_and_gives_what_it_gave(events: list[Any], name: str, call: Any, result: object) -> None:
    module = count(name, events)
    assert events == []
    assert call(module) == result
    assert events == [("step", {"number": 1})]


def test_a_generator_that_is_not_exhausted_has_made_no_step(events: list[Any]) -> None:
    batches = count("Trainer.batches", events).Trainer().batches()
    assert [next(batches), next(batches)] == [1, 2]
    assert events == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Trainer.limit", "expected a function, found int"),
        ("Trainer.streams", "expected a function, found an asynchronous generator"),
        ("Trainer", "expected a function, found a class"),
        ("Trainer.nothing", "has no attribute 'nothing'"),
    ],
)
def test_a_callable_that_cannot_be_counted_is_refused(events: list[Any], name: str, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        count(name, events)
    assert [event for event, _ in events] == ["refused"]
    assert why in events[0][1]["why"]
