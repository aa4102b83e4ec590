"""Rules for every application."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tavola.apps.shell import AppSettings
from tavola.apps.shell.application import routes_of
from tavola.cli.applications import APPLICATIONS, Application, create

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.name)
def test_allow_lists_the_methods_of_every_path(
    application: Application, served: Callable[[FastAPI], TestClient]
) -> None:
    """At every path of every application, Allow names exactly the methods that are not a 405."""
    face: Any = create(application, AppSettings())
    client = served(face)
    paths = {re.sub(r"\{[^}]*\}", "x", route.path) for route in routes_of(face)}
    assert len(paths) > 10

    for path in sorted(paths):
        answers = {method: client.request(method, path, follow_redirects=False) for method in METHODS}
        refused = {method: each for method, each in answers.items() if each.status_code == 405}
        taken = set(METHODS) - set(refused)
        taken |= {"HEAD"} if "GET" in taken else set()
        for method, each in refused.items():
            assert set(each.headers["allow"].split(", ")) == taken, (method, path)


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.name)
def test_head_is_allowed_wherever_get_is(
    application: Application, served: Callable[[FastAPI], TestClient]
) -> None:
    """Monitors and proxies use HEAD."""
    client = served(create(application, AppSettings()))

    for path in ("/healthz", "/readyz", "/", "/ui/", "/ui/api", "/openapi.json"):
        get = client.get(path, follow_redirects=False).status_code
        assert client.head(path, follow_redirects=False).status_code == get, path
        assert get < 400
