"""Simulating: the studio's numbers are the command line's, the hottest bucket is where the hottest key lies, and a run can end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola.connections import connect_async
from tavola.design import simulation
from tavola.design.simulation import Burst, Scenario
from tavola.engine import Engine
from tavola.model.document import Design
from tavola.studio import Assets, Endpoint, Studio, create
from tavola.studio.api import BY_NAME
from tavola.studio.api.simulation import SimulationProgress, SimulationRequest, SimulationRunRequest
from tavola.studio.problems import RequestRefused
from tavola.web import running_server
from tests.design.builders import design, entity, table, text, update
from tests.design.simulation.designs import by_status
from tests.studio.api_client import ApiClient


def zipf(per_second: float = 900.0, skew: float = 1.1) -> Design:
    """Writes to keys by Zipf's law, and nothing else."""
    return design(
        table(
            entity(
                "Page",
                text("page_id"),
                text("body"),
                pk="PAGE#{page_id}",
                writes=[
                    update(
                        "body", per_second=per_second, peak_per_second=per_second, item_bytes=500, skew=skew
                    )
                ],
                items=2_000,
            )
        )
    )


@pytest.fixture
def api_for() -> Iterator[Callable[[Design | None], ApiClient]]:
    with Engine.open() as engine:
        yield lambda design: ApiClient(engine, design)


def simulated(made: ApiClient, **scenario: Any) -> Any:
    return made.call("POST /heat/simulate", scenario)


def test_the_numbers_are_the_command_lines(api_for: Callable[..., ApiClient]) -> None:
    """Same design, same scenario, same document: with bursts, a mode and a seed."""
    result = simulated(
        api_for(zipf()),
        hours=0.2,
        seed=7,
        rate_factor=2.0,
        skew=0.5,
        bursts=[{"factor": 3.0, "seconds": 30.0, "per_hour": 6.0}],
        mode="provisioned",
        write_units=500.0,
    )
    scenario = Scenario(
        hours=0.2,
        seed=7,
        rate_factor=2.0,
        skew=0.5,
        bursts=(Burst(3.0, 30.0, 6.0),),
        mode="provisioned",
        write_units=500.0,
        settled=True,
    )

    assert result == {"schema": simulation.SCHEMA, **simulation.simulate(zipf(), scenario).to_json()}


def test_zipf_paints_its_hottest_bucket_where_the_hottest_key_lies(api_for: Callable[..., ApiClient]) -> None:
    """The brightest row of the map holds the busiest key's place in the hash."""
    result = simulated(api_for(zipf(skew=1.6)), hours=0.2, cold=True)
    (map_,) = (each for each in result["heat_maps"] if each["access"] == "write")
    rows = [sum(row) for row in map_["heat"]]
    busiest = result["places"][0]["busiest"][0]

    assert rows.index(max(rows)) == int(busiest["position"] * len(rows))
    assert busiest["name"].startswith("PAGE#")


def test_the_timeline_is_the_simulators_own_record(api_for: Callable[..., ApiClient]) -> None:
    """Splits come with their moment and their reason, as many as the place says."""
    result = simulated(api_for(by_status(skew=2.0)), hours=0.5, cold=True)
    places = {(each["name"], each["access"]): each for each in result["places"]}

    assert any(each["cuts"] for each in result["heat_maps"])
    for map_ in result["heat_maps"]:
        heat = [cut for cut in map_["cuts"] if cut[2] == "heat"]
        assert len(heat) == places[map_["name"], map_["access"]]["splits"]
        assert [cut[0] for cut in map_["cuts"]] == sorted(cut[0] for cut in map_["cuts"])
    assert any(each["shards"] for each in result["places"])


def test_one_table_may_be_simulated_alone(api_for: Callable[..., ApiClient]) -> None:
    """A table that the design does not have is refused."""
    made = api_for(zipf())
    name = zipf().tables[0].name

    assert {each["table"] for each in simulated(made, hours=0.1, table=name)["places"]} == {name}
    with pytest.raises(RequestRefused, match="does not declare Nowhere"):
        simulated(made, hours=0.1, table="Nowhere")


def test_what_cannot_be_is_refused(api_for: Callable[..., ApiClient]) -> None:
    """No design, a scenario that excludes itself, and hours that are none."""
    with pytest.raises(RequestRefused, match="No design"):
        simulated(api_for(None))
    with pytest.raises(simulation.SimulationError, match="exclude each other"):
        simulated(api_for(zipf()), warm=True, cold=True)
    with pytest.raises(simulation.SimulationError, match="provisioned tables"):
        simulated(api_for(zipf()), mode="on-demand", read_units=5.0)
    with pytest.raises(simulation.SimulationError, match="hours must be"):
        simulated(api_for(zipf()), hours=0.0)


def test_a_run_reports_progress_and_can_be_stopped() -> None:
    """A stopped run ends at its next step with an error; a finished one is reported as ended."""
    start, progress, end = (
        BY_NAME[name].handler
        for name in ("POST /heat/simulate", "GET /heat/simulate/progress", "POST /heat/simulate/end")
    )

    async def run() -> tuple[str, Any, str, str]:
        with Engine.open() as engine:
            async with connect_async(engine) as db:
                studio = ApiClient(engine, zipf()).studio(db)
                unknown = await progress(studio, SimulationRunRequest("mine"))
                request = SimulationRequest(hours=700.0, run="mine")
                running: asyncio.Future[Any] = asyncio.ensure_future(start(studio, request))
                while (response := await progress(studio, SimulationRunRequest("mine"))).done == 0:
                    await asyncio.wait({running}, timeout=0.01)
                await end(studio, SimulationRunRequest("mine"))
                with pytest.raises(RequestRefused, match="was stopped"):
                    await running
                ended = await progress(studio, SimulationRunRequest("mine"))
                return unknown.state, response, ended.state, str(response.of)

    unknown, response, ended, of = asyncio.run(run())

    assert (unknown, response.state, ended) == ("unknown", "running", "ended")
    assert 0 < response.done < response.of == int(of)
    assert response.done < response.of / 10, "progress is reported long before the end"


def test_who_begins_many_runs_ends_the_oldest() -> None:
    """Only a few simulations run at once; the oldest is stopped and its request gets an error."""
    start, progress = (
        BY_NAME[name].handler for name in ("POST /heat/simulate", "GET /heat/simulate/progress")
    )

    async def run() -> list[str]:
        with Engine.open() as engine:
            async with connect_async(engine) as db:
                studio = ApiClient(engine, zipf()).studio(db)
                names = [f"run {number}" for number in range(4)]
                runs = [
                    asyncio.ensure_future(start(studio, SimulationRequest(hours=700.0, run=name)))
                    for name in names
                ]
                with pytest.raises(RequestRefused, match="was stopped"):
                    await runs[0]
                states = [(await progress(studio, SimulationRunRequest(name))).state for name in names]
                for each in runs[1:]:
                    each.cancel()
                await asyncio.gather(*runs, return_exceptions=True)
                return states

    assert asyncio.run(run()) == ["ended", "running", "running", "running"]


@pytest.mark.parametrize("goes", ["whoever asked", "the studio"])
def test_a_long_answer_ends_with_who_awaits_it(goes: str, tmp_path: Path) -> None:
    """A simulation is cancelled at once when its page or process ends."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def long(studio: Studio, asked: SimulationRunRequest) -> SimulationProgress:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return SimulationProgress("ended", 0, 0)

    async def run() -> bytes:
        with Engine.open() as engine:
            async with connect_async(engine) as db:
                studio = ApiClient(engine).studio(db)
                endpoints = (Endpoint("GET", "/long", long, cancel_on_disconnect=True),)
                application = create(studio, endpoints=endpoints, assets=Assets(tmp_path))
                async with running_server(application) as served:
                    reader, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
                    host = f"Host: 127.0.0.1:{served.address.port}"
                    writer.write(f"GET /api/long?run=x HTTP/1.1\r\n{host}\r\n\r\n".encode())
                    await begun.wait()
                    if goes == "whoever asked":
                        writer.close()
                        await asyncio.wait_for(cancelled.wait(), 5)
                        return b""
                answer = await asyncio.wait_for(reader.read(), 5)
                writer.close()
                return answer

    answer = asyncio.run(asyncio.wait_for(run(), 8))

    assert cancelled.is_set()
    assert goes == "whoever asked" or (b" 503 " in answer and b"cancelled" in answer)


def test_a_simulation_is_not_waited_for() -> None:
    """The endpoint that may take minutes is one of those."""
    assert BY_NAME["POST /heat/simulate"].cancel_on_disconnect
