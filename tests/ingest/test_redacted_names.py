"""Names of users and hosts are taken out of a report however they are written, and wherever in a text they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.ingest import framing
from ncuroof.ingest.redaction.redact import redact
from ncuroof.ingest.redaction.secrets import find_secrets
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Session, write_report

DESCRIBED = Described("copy", 250_000, loads=Accesses(2**20), stores=Accesses(2**20))


def test_homes_and_users_are_found_however_they_are_written() -> None:
    texts = (
        rb"C:\Users\Ada Lovelace\x C:/Users/babbage/y C:\\Users\\curie\\z /Users/dirac/a /data/home/erdos/b /home/fermi"
    )
    report = write_report([Kernel("k", {}, demangled=texts.decode())], Session(host_name="10.0.0.7"))
    secrets = find_secrets(report, framing.walk(report))
    assert secrets.users == {b"Ada Lovelace", b"babbage", b"curie", b"dirac", b"erdos"}
    assert rb"C:\Users\Ada Lovelace" in secrets.homes
    assert secrets.addresses == {b"10.0.0.7"}


@pytest.mark.parametrize(
    ("host", "program", "ranges", "secrets"),
    [
        ("abcdefg", "/home/jürgen/train/app", ("load /home/jürgen/geheim/daten.bin", "epoch jürgen"), ["jürgen"]),
        ("abcdefg", "/home/jürgen/train/app", ("by JÜRGEN", "and Jürgen"), ["JÜRGEN", "Jürgen"]),
        ("abcdefg", "/Users/Ada Lovelace/app", ("load /Users/Ada Lovelace/x", "by Ada Lovelace"), ["Ada", "Lovelace"]),
        ("abcdefg", r"C:\Users\Ada Lovelace\x.exe", (r"c:\users\ada lovelace", "by ada lovelace"), ["ada", "lovelace"]),
        ("abcdefg", "/opt/app", ("load /home/lovelace", "lovelace's"), ["lovelace"]),
        ("abcdefg", "/opt/app", ("z /home/babbage:/x", "(/home/lovelace)"), ["babbage", "lovelace"]),
        ("abcdefg", "/opt/app", ("see /home/fermi.", "by fermi"), ["fermi"]),
        ("abcdefg", "/opt/app", (r"in C:\Users\Ada Lovelace", "load /Users/curie then"), ["Ada", "Lovelace", "curie"]),
        ("abcdefg", "/home/lovelace", ("LOVELACE run", "cd /home/lovelace"), ["LOVELACE", "lovelace"]),
        ("DESKTOP-AB12CD3", "/opt/app", ("on desktop-ab12cd3", "x"), ["desktop-ab12cd3", "DESKTOP-AB12CD3"]),
        ("build-7.example.org", "/opt/app", ("BUILD-7.EXAMPLE.ORG", "Build-7"), ["BUILD-7", "Build-7", "EXAMPLE"]),
        ("xxxxx", "/opt/app", ("on xxxxx", "x"), []),
    ],
)
def test_a_name_is_taken_out_however_it_is_written(
    host: str, program: str, ranges: tuple[str, str], secrets: list[str]
) -> None:
    described = replace(DESCRIBED, nvtx=ranges)
    session = Session(host_name=host, processes=((4242, program),))
    report = write_report([kernel(described)], session)
    done = redact(report, where="r")
    for secret in secrets:
        assert secret.encode() in report + program.encode(), secret
        assert secret.encode() not in done.content, secret
    assert done.left == () or host == "xxxxx"


def test_a_name_is_overwritten_by_as_many_bytes() -> None:
    described = replace(DESCRIBED, nvtx=("load /home/jürgen and /home/shared/x, shared memory", "ab"))
    session = Session(host_name="abcdefg", processes=((4242, "/opt/app"),))
    done = redact(write_report([kernel(described)], session), where="r")
    home = "x" * len("/home/jürgen".encode())
    assert f"load {home} and {'x' * len('/home/shared')}/x, shared memory".encode() in done.content
    assert done.unsearched == ("shared",)


@pytest.mark.parametrize("end", ["", "2", "z", "\u00e9"])
def test_the_end_of_a_text_is_not_guessed_from_the_following_bytes(end: str) -> None:
    # the number of the field behind a kernel's name is written as "2" or ":"
    name = "copy /home/fermi" + end
    report = write_report([Kernel(name, dict(METRICS_BY_CHIP["GA100"]))], Session(host_name="abcdefg"))
    done = redact(report, where="r")
    assert [(place, word) for place, word, _ in done.left] == [
        ("kernel names", f"/home/fermi{end}"),
        ("kernel names", f"fermi{end}"),
    ]
