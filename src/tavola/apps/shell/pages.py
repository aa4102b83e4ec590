"""Pages: HTML for people, from Jinja templates over the shell's layout.

An application's templates extend `shell/base.html` and import `shell/macros.html`. Addresses are made by `url`, so that they
hold under a base path. What a page loads has its content's digest in its address, and may be kept for ever.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from tavola import Clock
from tavola.apps.shell import charts
from tavola.clock import SYSTEM_CLOCK
from tavola.web import ProblemError

SHELL = Path(__file__).parent
STATIC = "/ui/static"
HOME = "tavola.home"  # in a request's scope: the base path of the demo that an application is part of
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of the navigation; `path` is below the application's root."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    name: str
    content: bytes
    media_type: str
    digest: str


class Pages:
    """The pages of one application."""

    def __init__(
        self,
        title: str,
        navigation: Sequence[Link] = (),
        *,
        templates: Path | None = None,
        static: Path | None = None,
        tagline: str = "",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.title = title
        self.navigation = tuple(navigation)
        self.tagline = tagline
        self.clock = clock
        self.assets = _assets(SHELL / "static", *([] if static is None else [static]))
        own = [] if templates is None else [FileSystemLoader(templates)]
        shell = PrefixLoader({"shell": FileSystemLoader(SHELL / "templates")})
        self.environment = Environment(
            loader=ChoiceLoader([*own, shell]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals.update(charts=charts, title=title, tagline=tagline)
        self.environment.tests.update(current=current)
        self.environment.filters.update(
            when=when,
            day=day,
            ago=self.ago,
            duration=duration,
            number=number,
            percent=percent,
            size=size,
            plural=plural,
        )

    def render(
        self,
        request: Request,
        template: str,
        context: Mapping[str, Any] | None = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a page."""
        return HTMLResponse(self.text(request, template, context), status, headers)

    def text(self, request: Request, template: str, context: Mapping[str, Any] | None = None) -> str:
        """Return a page's HTML, for who keeps it."""
        base = str(request.scope.get("root_path", "")).rstrip("/")
        path = str(request.scope["path"]).removeprefix(base)

        def url(to: str, /, **query: Any) -> str:
            return address(base, to, query)

        def asset(name: str) -> str:
            found = self.assets[name]
            return f"{base}{STATIC}/{found.digest}/{found.name}"

        home = request.scope.get(HOME)
        return self.environment.get_template(template).render(
            {
                "request": request,
                "home": None if home is None or home == base else f"{home}/",
                "url": url,
                "asset": asset,
                "navigation": self.navigation,
                "here": path,
                **(context or {}),
            }
        )

    def url(self, request: Request, to: str, /, **query: Any) -> str:
        """Return the address of a path of this application, with a query."""
        return address(str(request.scope.get("root_path", "")).rstrip("/"), to, query)

    def redirect(self, request: Request, to: str, /, **query: Any) -> RedirectResponse:
        """Return the answer to a form that was accepted: go and see (303)."""
        return RedirectResponse(self.url(request, to, **query), 303)

    def problem(self, request: Request, problem: ProblemError) -> HTMLResponse:
        """Return a problem as a page."""
        return self.render(
            request,
            "shell/problem.html",
            {"problem": problem},
            status=problem.status,
            headers=problem.headers,
        )

    def static(self, digest: str, name: str) -> Response | None:
        """Return a file that pages load; None: there is none of that name."""
        found = self.assets.get(name)
        if found is None:
            return None
        headers = _KEPT if digest == found.digest else None
        return Response(found.content, headers=headers, media_type=found.media_type)

    def ago(self, moment: datetime | None) -> Markup:
        """Return how long ago something was, with the moment itself beside it."""
        if moment is None:
            return Markup("—")
        passed = self.clock.now() - moment.timestamp()
        told = (
            "just now" if abs(passed) < 45 else _rough(abs(passed)) + (" ago" if passed > 0 else " from now")
        )
        return _time(moment, told, title=_moment(moment))


def current(link: Link, here: str, navigation: Sequence[Link]) -> bool:
    """Tell whether a link of the navigation is where a page is: the longest that its path begins with."""
    fitting = [each for each in navigation if f"{here}/".startswith(each.path.rstrip("/") + "/")]
    fitting = [each for each in fitting if each.path != "/ui/" or here in ("/ui", "/ui/")]
    return bool(fitting) and link is max(fitting, key=lambda each: len(each.path))


def address(base: str, to: str, query: Mapping[str, Any]) -> str:
    """Return a path under a base, with a query of what is not None."""
    told = [(name.rstrip("_"), value) for name, value in query.items() if value is not None and value != ""]
    path = base + quote(to, safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{urlencode(told, doseq=True)}" if told else path


def _assets(*folders: Path) -> dict[str, Asset]:
    found: dict[str, Asset] = {}
    for folder in folders:
        for path in sorted(each for each in folder.iterdir() if each.is_file()):
            content = path.read_bytes()
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            found[path.name] = Asset(path.name, content, kind, sha256(content).hexdigest()[:16])
    return found


# Filters.


def when(moment: datetime | None) -> Markup:
    """Return a moment as people read it, in UTC."""
    return Markup("—") if moment is None else _time(moment, _moment(moment))


def day(moment: datetime | date | None) -> Markup:
    """Return a day: 3 Nov 2026."""
    if moment is None:
        return Markup("—")
    plain = moment.astimezone(UTC).date() if isinstance(moment, datetime) else moment
    return Markup('<time datetime="{}">{}</time>').format(plain.isoformat(), f"{plain.day} {plain:%b %Y}")


def _time(moment: datetime, told: str, *, title: str | None = None) -> Markup:
    at = moment.astimezone(UTC)
    plain = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if title is None:
        return Markup('<time datetime="{}">{}</time>').format(plain, told)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(plain, title, told)


def _moment(moment: datetime) -> str:
    at = moment.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def duration(span: timedelta | float | Decimal | None) -> str:
    """Return a span in two units at most: 2 h 5 min; less than none, from a clock that was set back, is none."""
    if span is None:
        return "—"
    seconds = max(0.0, float(span.total_seconds() if isinstance(span, timedelta) else span))
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    told: list[str] = []
    left = round(seconds)
    for name, length in units:
        if left >= length and len(told) < 2:
            told.append(f"{left // length} {name}")
            left %= length
        elif told:
            break
    return " ".join(told)


def _rough(seconds: float) -> str:
    for name, length in (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3_600)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{max(1, round(seconds / 60))} min"


def number(value: float | Decimal | None, digits: int | None = None) -> str:
    """Return a number with its thousands apart; whole unless digits are asked for."""
    if value is None:
        return "—"
    if digits is None:
        digits = 0 if value == int(value) else 1
    return f"{value:,.{digits}f}"


def percent(part: float | Decimal | None, digits: int = 0) -> str:
    """Return a share of one as a percentage."""
    return "—" if part is None else f"{float(part) * 100:.{digits}f} %"


def size(count: int | None) -> str:
    """Return bytes as people read them."""
    if count is None:
        return "—"
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 ticket, 2 tickets."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
