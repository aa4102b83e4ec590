"""The gallery's pages and JSON: every sample is listed, displayed and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.gallery import SAMPLES
from tavola.apps.gallery.web import create
from tavola.apps.shell import AppSettings
from tests.apps.conftest import Target

Served = Callable[[FastAPI], TestClient]
PAGE = {"Accept": "text/html"}


def test_the_front_page_leads_to_every_sample(served: Served, target: Target) -> None:
    """Each sample has its card, with links to its keys and to each demonstration."""
    if target.kind == "local":
        pytest.skip(
            "DynamoDB Local may have no keys of several attributes, and the gallery wants all its samples"
        )
    client = served(create(target.settings(secret=b"0123456789abcdef")))
    page = client.get("/ui/", headers=PAGE).text

    for sample in SAMPLES.values():
        assert f'href="/ui/samples/{sample.name}"' in page
        for each in sample.demonstrations:
            assert f'href="/ui/samples/{sample.name}/{each.name}"' in page


def test_every_page_of_every_sample_is_served(served: Served) -> None:
    """A sample's page shows its keys and items, a demonstration's page its results; one that writes waits for its button."""
    client = served(create(AppSettings()))

    for sample in SAMPLES.values():
        page = client.get(f"/ui/samples/{sample.name}", headers=PAGE)
        assert page.status_code == 200
        assert sample.tables[0].settings.name in page.text
        for each in sample.demonstrations:
            address = f"/ui/samples/{sample.name}/{each.name}"
            page = client.get(address, headers=PAGE)
            assert page.status_code == 200, address
            assert ("<form" in page.text) == each.writes
            ran = client.post(address, headers=PAGE, data={}) if each.writes else page
            assert ran.status_code == 200, address
            assert "CU" in ran.text or "Rejected" in ran.text or "Pairs" in ran.text, address


def test_c03_the_catalogue_page_lists_the_uses_of_the_index(served: Served) -> None:
    """The page lists each entity with its key in the overloaded index, and the purpose."""
    page = served(create(AppSettings())).get("/ui/samples/catalogue", headers=PAGE).text

    for text in ("EMAIL#{email}", "STATUS#{status}#{shard}", "CATEGORY#{category}", "featured is True"):
        assert text in page
    featured = page[page.index("Items in GSI2") :]
    assert "product-104" in featured
    assert "product-101" not in featured


def test_a_sample_is_filled_once(tmp_path: Path) -> None:
    """A second start on the same store keeps existing data: counted views stay counted."""
    settings = AppSettings(target=f"file:{tmp_path / 'gallery.db'}")
    for count in (1, 2):
        with TestClient(create(settings), base_url="http://127.0.0.1") as client:
            steps = client.post("/samples/profiles/demonstrations/views").json()

        assert steps[1]["items"] == [count]


@pytest.mark.parametrize("path", ["/ui/samples/none", "/ui/samples/social/none"])
def test_an_unknown_page_is_a_404(served: Served, path: str) -> None:
    """A missing page is an HTML page with status 404."""
    answer = served(create(AppSettings())).get(path, headers=PAGE)

    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]


def test_the_samples_as_json(served: Served) -> None:
    """Every demonstration can be run as JSON, and every design read as a document."""
    client = served(create(AppSettings()))
    listed = client.get("/samples").json()

    assert [each["name"] for each in listed] == list(SAMPLES)
    assert client.get("/samples/social/design").json()["format"] == "tavola-design"
    steps = client.post("/samples/organisation/demonstrations/filter-trap").json()
    assert [(step["scanned"], len(step["items"])) for step in steps] == [(60, 6), (6, 6)]
    assert steps[0]["usd_per_million"] == "0.625"
    assert client.post("/samples/none/demonstrations/x").status_code == 404
