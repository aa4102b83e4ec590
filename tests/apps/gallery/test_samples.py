"""The samples keep to one form: each loads, runs, can be run again, and uses every pattern that it declares."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tavola import AsyncConnection, connect_async, design_document, design_of, overview, read_document
from tavola.apps.gallery import SAMPLES, Told, load_samples
from tavola.apps.gallery.organisation import OrgUser
from tavola.apps.gallery.web import create
from tavola.apps.shell import Settings
from tests.apps.conftest import Run


async def _everything(db: AsyncConnection, name: str) -> list[tuple[str, tuple[Told, ...]]]:
    sample = SAMPLES[name]
    await sample.load(db)
    return [(each.name, await each.run(db)) for each in sample.demonstrations]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_runs_twice_with_one_answer(name: str, run: Run[Any]) -> None:
    """A demonstration puts back what it changed: a second run of all of them tells what the first told."""

    async def twice() -> tuple[Any, Any]:
        async with connect_async("memory:") as db:
            first = await _everything(db, name)
            sample = SAMPLES[name]
            return first, [(each.name, await each.run(db)) for each in sample.demonstrations]

    first, second = run(twice())
    assert [_plain(name, told) for _, told in first] == [_plain(name, told) for _, told in second]
    assert all(told for _, told in first)


def _plain(name: str, told: tuple[Told, ...]) -> list[Any]:
    """Return steps as they can be compared; `profiles` counts views, and goes on counting."""
    counting = name == "profiles"
    return [
        (
            step.what,
            step.refused,
            step.writes,
            [type(each) if counting else str(each) for each in step.found],
        )
        for step in told
    ]


WRITING = [
    (sample.name, each.name) for sample in SAMPLES.values() for each in sample.demonstrations if each.writes
]


class Cut(BaseException):
    """The process is killed."""


@pytest.mark.parametrize(("name", "demonstration"), WRITING)
def test_a_run_that_broke_off_leaves_nothing_behind(
    name: str, demonstration: str, run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any of its calls, it tells the next time what it would have told, and so do its neighbours."""
    sample = SAMPLES[name]
    shown = sample.demonstration(demonstration)
    assert shown is not None

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
                    await shown.run(db)
                except Cut:
                    broken = True
            again = _plain(name, await shown.run(db))
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


def test_two_who_press_run_at_once_both_see_it(served: Any) -> None:
    """What writes waits for what writes; nobody sees half of another's change."""
    client = served(create(Settings()))
    with ThreadPoolExecutor(4) as pool:
        for name, demonstration in WRITING:
            path = f"/samples/{name}/demonstrations/{demonstration}"
            answers = list(pool.map(client.post, [path] * 4))

            assert [each.status_code for each in answers] == [200] * 4, path
            if name != "profiles":
                assert len({each.text for each in answers}) == 1, path


def test_a_load_that_broke_off_is_completed(run: Run[Any]) -> None:
    """What is missing is stored at the next start, and what is there stays as it is."""

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
            kept = await db.get(OrgUser.Key(org_id="org-1", user_id="user-01"))
            assert kept is not None
            assert kept.bio == "changed by somebody"
            return [first, whole, again - len(half)]

    every = sum(len(sample.entities()) for sample in SAMPLES.values())
    assert run(loaded()) == [every, 0, 0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_a_design(name: str) -> None:
    """Each is a declared design: as a document and back, with a title on every query pattern that it declares."""
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
def test_every_query_of_a_sample_is_asked(name: str, run: Run[Any]) -> None:
    """A pattern that no demonstration asks would be no pattern: every index is read by one, and every key that tells its rate is got."""
    sample = SAMPLES[name]
    got: set[str] = set()

    async def asked() -> set[str]:
        found = set()
        async with connect_async("memory:") as db:
            await sample.load(db)
            for each in sample.demonstrations:
                with db.measured() as spent:
                    told = await each.run(db)
                found |= {
                    line for step in told for line in step.request.split() if "IndexName:" in step.request
                }
                got.update(
                    type(entity).__name__
                    for step in told
                    for entity in step.found
                    if "GetItem" in step.request
                )
                if not each.writes:  # what was written in an index would count as well
                    found |= {index for table in spent.tables.values() for index in table.indexes}
        return found

    design = design_of(*sample.tables)
    wanted = {index.name for table in design.tables for index in table.indexes}
    assert run(asked()) >= wanted
    assert got >= {
        entity.name
        for _, entity, pattern in design.patterns()
        if pattern is entity.primary and pattern.access is not None
    }
