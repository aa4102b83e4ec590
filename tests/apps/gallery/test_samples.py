"""Every sample loads, runs, can be run again, and uses every pattern that it declares."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tavola import AsyncConnection, connect_async, design_document, design_of, overview, read_document
from tavola.apps.gallery import SAMPLES, StepResult, load_samples
from tavola.apps.gallery.organisation import OrgUser
from tavola.apps.gallery.web import create
from tavola.apps.shell import AppSettings
from tests.apps.conftest import Run


async def _everything(db: AsyncConnection, name: str) -> list[tuple[str, tuple[StepResult, ...]]]:
    sample = SAMPLES[name]
    await sample.load(db)
    return [(each.name, await each.run(db)) for each in sample.demonstrations]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_runs_twice_with_the_same_result(name: str, run: Run[Any]) -> None:
    """A demonstration restores what it changed: a second run of all demonstrations returns the same steps."""

    async def twice() -> tuple[Any, Any]:
        async with connect_async("memory:") as db:
            first = await _everything(db, name)
            sample = SAMPLES[name]
            return first, [(each.name, await each.run(db)) for each in sample.demonstrations]

    first, second = run(twice())
    assert [_plain(name, steps) for _, steps in first] == [_plain(name, steps) for _, steps in second]
    assert all(steps for _, steps in first)


def _plain(name: str, steps: tuple[StepResult, ...]) -> list[Any]:
    """Return steps in a comparable form; `profiles` counts views, which continue to grow."""
    counting = name == "profiles"
    return [
        (
            step.title,
            step.error,
            step.writes,
            [type(each) if counting else str(each) for each in step.items],
        )
        for step in steps
    ]


WRITING = [
    (sample.name, each.name) for sample in SAMPLES.values() for each in sample.demonstrations if each.writes
]


class Cut(BaseException):
    """The process is killed."""


@pytest.mark.parametrize(("name", "demonstration"), WRITING)
def test_an_aborted_run_leaves_nothing_behind(
    name: str, demonstration: str, run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any of its calls, a demonstration returns the usual result the next time, and so do the others."""
    sample = SAMPLES[name]
    chosen = sample.demonstration(demonstration)
    assert chosen is not None

    async def cut_after(calls: int) -> tuple[bool, list[Any]]:
        async with connect_async("memory:") as db:
            await sample.load(db)
            left, call = calls, db.backend.call

            async def cut(operation: str, request: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Cut
                return await call(operation, request)

            broken = False
            with monkeypatch.context() as patch:
                patch.setattr(db.backend, "call", cut)
                try:
                    await chosen.run(db)
                except Cut:
                    broken = True
            again = _plain(name, await chosen.run(db))
            others = [_plain(name, await each.run(db)) for each in sample.demonstrations if not each.writes]
            return broken, [again, *others]

    broken, whole = run(cut_after(1_000))
    assert not broken
    calls = 0
    while True:
        broken, again = run(cut_after(calls))
        assert again == whole, calls
        if not broken:
            break
        calls += 1
    assert calls > 2


def test_concurrent_runs_do_not_see_each_other(served: Any) -> None:
    """Demonstrations that write run one at a time, so that no run sees half of another's change."""
    client = served(create(AppSettings()))
    with ThreadPoolExecutor(4) as pool:
        for name, demonstration in WRITING:
            path = f"/samples/{name}/demonstrations/{demonstration}"
            answers = list(pool.map(client.post, [path] * 4))

            assert [each.status_code for each in answers] == [200] * 4, path
            if name != "profiles":
                assert len({each.text for each in answers}) == 1, path


def test_an_aborted_load_is_completed(run: Run[Any]) -> None:
    """Missing items are stored at the next start; existing ones stay unchanged."""

    async def loaded() -> list[int]:
        async with connect_async("memory:") as db:
            first = await load_samples(db)
            whole = await load_samples(db)
            sample = SAMPLES["organisation"]
            half = list(sample.entities())[20:]
            await db.delete_many(half)
            await db.update(
                OrgUser.Key(org_id="org-1", user_id="user-01"), OrgUser.bio.set("changed by somebody")
            )
            again = await load_samples(db)
            user = await db.get(OrgUser.Key(org_id="org-1", user_id="user-01"))
            assert user is not None
            assert user.bio == "changed by somebody"
            return [first, whole, again - len(half)]

    every = sum(len(sample.entities()) for sample in SAMPLES.values())
    assert run(loaded()) == [every, 0, 0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_a_design(name: str) -> None:
    """Each sample is a design that survives a round trip through a document, with a title on every query pattern."""
    sample = SAMPLES[name]
    design = design_of(*sample.tables)

    assert read_document(design_document(*sample.tables)) == design
    assert overview(design).startswith("# gallery-")
    assert not [
        f"{entity.name}.{pattern.name}"
        for _, entity, pattern in design.patterns()
        if pattern is not entity.primary and pattern.access is None
    ]
    assert all(table.settings.name.startswith("gallery-") for table in design.tables)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_query_of_a_sample_is_run(name: str, run: Run[Any]) -> None:
    """A demonstration reads every index, and gets by every key that declares a rate."""
    sample = SAMPLES[name]
    got: set[str] = set()

    async def run_query() -> set[str]:
        found = set()
        async with connect_async("memory:") as db:
            await sample.load(db)
            for each in sample.demonstrations:
                with db.measure() as spent:
                    steps = await each.run(db)
                found |= {
                    line for step in steps for line in step.request.split() if "IndexName:" in step.request
                }
                got.update(
                    type(entity).__name__
                    for step in steps
                    for entity in step.items
                    if "GetItem" in step.request
                )
                if not each.writes:  # what was written in an index would count as well
                    found |= {index for table in spent.tables.values() for index in table.indexes}
        return found

    design = design_of(*sample.tables)
    declared = {index.name for table in design.tables for index in table.indexes}
    assert run(run_query()) >= declared
    assert got >= {
        entity.name
        for _, entity, pattern in design.patterns()
        if pattern is entity.primary and pattern.access is not None
    }
