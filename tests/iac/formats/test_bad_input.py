"""Files that give no design: each is refused in a sentence, with its place, and nothing worse happens."""

from __future__ import annotations

import json
import os
import re
import time
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tavola.errors import TavolaError
from tavola.iac.formats import DesignFileNotFound, FormatError, UnknownFormat, read_design, write_workbench
from tavola.iac.formats.format_detection import KNOWN
from tavola.model.document import read_document, write_document

FILES = Path(__file__).parent / "files"
JSON_FILES = sorted(path.name for path in FILES.glob("*.json"))
SNIPPETS = [
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    ",",
    "\n",
    "${",
    "!Ref ",
    "&a ",
    "*a",
    "<<EOT\n",
    "#",
    "- ",
    "\t",
    "é",
    "null",
]
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**70),
    st.floats(allow_nan=False),
    st.sampled_from(["", "x", "S", "HASH", "{a}", "${a}", "a" * 300, "PK", "\ud800", "\U0010ffff"]),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just({"Ref": "x"}),
    st.just({"Fn::Sub": "${T}"}),
    st.just(["a", "a"]),
)


@cache
def text_of(name: str) -> str:
    """Return a file's text."""
    return (FILES / name).read_text()


def attempt(path: Path) -> None:
    """Read a file: a whole design comes of it, or an error of ours."""
    try:
        imported = read_design(path)
    except TavolaError:
        return
    document = json.loads(json.dumps(write_document(imported.design)))
    assert read_document(document) == imported.design
    write_workbench(imported.design, imported.samples)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"", "the file is empty"),
        ("a.yaml", b" \n\n", "the file is empty"),
        ("a.json", b"\x89PNG\r\n\x1a\n\x00", "not a text file"),
        ("a.json", b'{"a": \x00}', "not a text file"),
        ("a.json", b'{"a": 1,}', r"a.json:1:\d+: not valid JSON"),
        ("a.json", b"[" * 5000, "not valid JSON"),
        ("a.json", b'{"a":' * 200 + b"1" + b"}" * 200, "nested deeper than 100"),
        ("a.json", b'{"a": NaN}', "NaN is not a JSON number"),
        ("a.yaml", b"a: [1, 2", r"a.yaml:\d+:\d+: not valid YAML"),
        ("a.yaml", b"a: &x [*x]", "refers to a value that contains it"),
        ("a.yaml", b"? [a]\n: b", "a key must be text"),
        ("a.yaml", b"a: b: c", "not valid YAML"),
        ("a.yaml", b"--- 1\n--- 2", "not valid YAML"),
        ("a.yaml", b"just text", "unknown file format"),
        (
            "a.yaml",
            b"Resources: {}\nA: 1\nA: 2",
            r":3:1: not valid YAML: the key 'A' occurs twice",
        ),
        ("a.json", b'{"Resources": {"A": 1, "B": 2, "A": 3}}', "two members named 'A'"),
        (
            "a.yaml",
            b"a: !!binary aGVsbG8=",
            r":1:4: not valid YAML: the tag !!binary is not supported",
        ),
        ("a.yaml", b"a: !!set {x}", "the tag !!set is not supported"),
        ("a.yaml", b"a: !!timestamp 2024-01-01", "the tag !!timestamp is not supported"),
        ("a.yaml", b"a: .nan", ".nan is not a finite number"),
        ("a.json", "\ufeff".encode("utf-16"), "the file is empty"),
        ("a.yaml", b"!!python/object/apply:os.system ['true']", "unknown file format|not valid YAML"),
        ("a.json", b'{"hello": "world"}', "unknown file format"),
        ("a.json", b"3", "unknown file format"),
        ("a.tf", b"x = 1", "no Terraform block found"),
        ("a.tf", b'variable "a" {}', "no aws_dynamodb_table resource found"),
        ("a.json", b'{"ModelName": "m", "DataModel": []}', "DataModel contains no table"),
        (
            "a.json",
            b'{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}',
            "no AWS::DynamoDB::Table resource found, only AWS::S3::Bucket",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    """Whatever is wrong with a file is said once, with the file's name and what to do."""
    (tmp_path / name).write_bytes(content)

    with pytest.raises(FormatError) as refused:
        read_design(tmp_path / name)
    assert re.search(problem, str(refused.value))
    assert name in str(refused.value)


def test_aliases_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    """A few lines of YAML that stand for a thousand million values are refused at once, merges too."""
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    merges = ["m0: &m0 {a: 1}"] + [
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 10)
    ]
    for text in ("\n".join(lines), "\n".join(merges)):
        (tmp_path / "bomb.yaml").write_text(text)

        with pytest.raises(FormatError, match="its YAML aliases expand"):
            read_design(tmp_path / "bomb.yaml")


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    """A file beyond any design is not read."""
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(9 * 1024 * 1024)

    with pytest.raises(FormatError, match="larger than 8,388,608 bytes"):
        read_design(tmp_path / "large.json")


def test_what_is_no_regular_file_is_refused_unread(tmp_path: Path) -> None:
    """Neither a device without an end nor a pipe that nobody writes to is waited for."""
    os.mkfifo(tmp_path / "pipe.json")
    for path in ("/dev/zero", tmp_path / "pipe.json"):
        with pytest.raises(FormatError, match="not a regular file"):
            read_design(path)


def test_a_long_condition_is_read_at_once(tmp_path: Path) -> None:
    """The time for an expression of a command grows with its length, and not with its square."""
    command = "aws dynamodb query --key-condition-expression " + "a" * 19_900
    model = json.loads(text_of("data_model.json"))
    model["access_patterns"] = [{**model["access_patterns"][1], "implementation": command}] * 20
    (tmp_path / "m.json").write_text(json.dumps(model))
    begun = time.process_time()

    read_design(tmp_path / "m.json")

    assert time.process_time() - begun < 5


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    """A missing file is told apart from one that is wrong; one of no known format names those that are."""
    with pytest.raises(DesignFileNotFound, match="no such file"):
        read_design(tmp_path / "no.json")
    (tmp_path / "data.json").write_text('{"Item": {"a": {"S": "b"}}}\n{"Item": {"a": {"S": "c"}}}\n')

    with pytest.raises(UnknownFormat, match=r"data\.json:2:1: not valid JSON"):
        read_design(tmp_path / "data.json")
    (tmp_path / "data.json").write_text('{"Item": {"a": {"S": "b"}}}\n')
    with pytest.raises(UnknownFormat) as refused:
        read_design(tmp_path / "data.json")
    assert KNOWN in str(refused.value)


@st.composite
def mutated_text(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[str, str]:
    """A fixture's text with a few places changed."""
    name = draw(st.sampled_from(names))
    text = text_of(name)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 40))
        text = text[:at] + draw(st.sampled_from(SNIPPETS)) * draw(st.integers(0, 3)) + text[at + width :]
    return name.replace("/", "-"), text


@st.composite
def mutated_json(draw: st.DrawFn) -> tuple[str, str]:
    """A fixture with a few of its values exchanged for others."""
    name = draw(st.sampled_from(JSON_FILES))
    root = json.loads(text_of(name))
    for _ in range(draw(st.integers(1, 4))):
        node: Any = root
        for _ in range(draw(st.integers(1, 8))):
            members: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not members:
                break
            step = members[draw(st.integers(0, len(members) - 1))]
            if isinstance(node[step], dict | list) and draw(st.integers(0, 4)):
                node = node[step]
                continue
            if isinstance(node, dict) and draw(st.booleans()):
                del node[step]
            else:
                node[step] = deepcopy(draw(LEAVES))
            break
    return name, json.dumps(root)


FUZZ = settings(max_examples=70, deadline=None, suppress_health_check=list(HealthCheck))


@FUZZ
@given(mutated_json())
def test_json_with_anything_in_it_gives_a_design_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, mutated: tuple[str, str]
) -> None:
    """Values of any kind at any place of any of the JSON formats end in no other error."""
    path = tmp_path_factory.getbasetemp() / f"fuzz-{mutated[0]}"
    path.write_text(mutated[1])

    attempt(path)


@FUZZ
@given(mutated_text(("shop.yaml", "players.json", "schema.json")))
def test_broken_text_gives_a_design_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, mutated: tuple[str, str]
) -> None:
    """YAML and JSON with signs put in or taken out end in no other error."""
    path = tmp_path_factory.getbasetemp() / f"fuzz-{mutated[0]}"
    path.write_text(mutated[1])

    attempt(path)


@settings(FUZZ, max_examples=30)
@given(mutated_text(("ledger/main.tf", "ledger/around.tf")))
def test_broken_hcl_gives_a_design_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, mutated: tuple[str, str]
) -> None:
    """HCL with signs put in or taken out ends in no other error."""
    path = tmp_path_factory.getbasetemp() / f"fuzz-{mutated[0]}"
    path.write_text(mutated[1])

    attempt(path)


@FUZZ
@given(st.text(max_size=200), st.sampled_from([".json", ".yaml", ".tf", ""]))
def test_any_text_gives_a_design_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str
) -> None:
    """A file of whatever name may hold whatever text."""
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")

    attempt(path)
