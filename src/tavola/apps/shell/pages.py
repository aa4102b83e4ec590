"""The HTML pages of an application: Jinja templates, and the filters that format dates, numbers and money.

An application's templates extend `shell/base.html` and import `shell/macros.html`. Links are built with `url`, so that they
work under a base path. URLs of static files contain a digest of the content, so that browsers may cache them forever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup
from starlette.types import Scope

from tavola import Clock
from tavola.apps.shell import charts
from tavola.clock import SYSTEM_CLOCK
from tavola.web import HashedFiles, ProblemError

SHELL = Path(__file__).parent
STATIC = "/ui/static"
_PAGE_TEXTS: Mapping[str, tuple[str, str]] = {  # heading and detail of a page that cannot be shown, by code
    "cursor-refused": ("Invalid link", "This link to a page of a list is not valid. Open the list again."),
    "invalid": ("Invalid address", "A value in the address of this page is not valid:"),
}
HOME = "tavola.home"  # in a request's scope: the base path of the demo that an application is part of


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of the navigation; `path` is relative to the application's root."""

    label: str
    path: str


class PageFiles(HashedFiles):
    """The shell's static files at `/{digest}/{name}`; with an outdated digest a file is served but not cached."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder)
        self.digests = {
            path.name: sha256(path.read_bytes()).hexdigest()[:16]
            for path in folder.iterdir()
            if path.is_file()
        }

    def get_path(self, scope: Scope) -> str:
        """Return the file's name, without the digest in front of it."""
        return super().get_path(scope).partition(os.sep)[2]

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return the file, to be cached forever if the URL has its current digest."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if f"/{self.digests[Path(full_path).name]}/" not in scope["path"]:
            response.headers["Cache-Control"] = "no-cache"
        return response


class Pages:
    """The pages of one application."""

    def __init__(
        self,
        title: str,
        navigation: Sequence[Link] = (),
        *,
        templates: Path | None = None,
        tagline: str = "",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.title = title
        self.navigation = tuple(navigation)
        self.tagline = tagline
        self.clock = clock
        self.files = PageFiles(SHELL / "static")
        own_loaders = [] if templates is None else [FileSystemLoader(templates)]
        shell = PrefixLoader({"shell": FileSystemLoader(SHELL / "templates")})
        self.environment = Environment(
            loader=ChoiceLoader([*own_loaders, shell]),
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
            age=self.age,
            duration=duration,
            number=number,
            money=money,
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
        """Return the HTML of a page, for callers that cache it."""
        base = str(request.scope.get("root_path", "")).rstrip("/")
        path = str(request.scope["path"]).removeprefix(base)

        def url(to: str, /, **query: Any) -> str:
            return build_url(base, to, query)

        def asset(name: str) -> str:
            return f"{base}{STATIC}/{self.files.digests[name]}/{name}"

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
        """Return the URL of a path of this application, with a query."""
        return build_url(str(request.scope.get("root_path", "")).rstrip("/"), to, query)

    def redirect(self, request: Request, to: str, /, **query: Any) -> RedirectResponse:
        """Return a 303 redirect, the response to an accepted form."""
        return RedirectResponse(self.url(request, to, **query), 303)

    def problem(self, request: Request, problem: ProblemError) -> HTMLResponse:
        """Return an error response as a page; what a response says about parameters and cursors is about links here."""
        title, detail = problem.title, problem.detail
        if request.method == "GET":
            title, detail = _PAGE_TEXTS.get(problem.code, (title, detail))
        return self.render(
            request,
            "shell/problem.html",
            {"problem": problem, "heading": title, "detail": detail},
            status=problem.status,
            headers=problem.headers,
        )

    def ago(self, moment: datetime | None) -> Markup:
        """Return how long ago a time was; the exact time is its tooltip."""
        if moment is None:
            return Markup("—")
        elapsed_s = self.clock.now() - moment.timestamp()
        text = "just now"
        if abs(elapsed_s) >= 45:
            text = _round_duration(abs(elapsed_s)) + (" ago" if elapsed_s > 0 else " from now")
        return _time(moment, text, title=format_moment(moment))

    def age(self, moment: datetime) -> Markup:
        """Return the time since a moment, in one unit; the exact time is its tooltip."""
        elapsed_s = max(0.0, self.clock.now() - moment.timestamp())
        return _time(moment, _round_duration(elapsed_s), title=format_moment(moment))


def current(link: Link, path: str, navigation: Sequence[Link]) -> bool:
    """Return whether a navigation link is the current one: the longest that is a prefix of the page's path."""
    fitting = [entry for entry in navigation if f"{path}/".startswith(entry.path.rstrip("/") + "/")]
    fitting = [entry for entry in fitting if entry.path != "/ui/" or path in ("/ui", "/ui/")]
    return bool(fitting) and link is max(fitting, key=lambda entry: len(entry.path))


def build_url(base: str, to: str, query: Mapping[str, Any]) -> str:
    """Return a path below a base path, with the query parameters that are not None."""
    pairs = [(name.rstrip("_"), value) for name, value in query.items() if value is not None and value != ""]
    path = base + quote(to, safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


# Filters: the one place that formats dates, durations, numbers and money.


def when(moment: datetime | None) -> Markup:
    """Return a time in UTC: 3 Nov 2026, 14:05 UTC."""
    return Markup("—") if moment is None else _time(moment, format_moment(moment))


def day(moment: datetime | date | None) -> Markup:
    """Return a date: 3 Nov 2026."""
    if moment is None:
        return Markup("—")
    plain = moment.astimezone(UTC).date() if isinstance(moment, datetime) else moment
    return Markup('<time datetime="{}">{}</time>').format(plain.isoformat(), f"{plain.day} {plain:%b %Y}")


def _time(moment: datetime, text: str, *, title: str | None = None) -> Markup:
    at = moment.astimezone(UTC)
    plain = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if title is None:
        return Markup('<time datetime="{}">{}</time>').format(plain, text)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(plain, title, text)


def format_moment(moment: datetime) -> str:
    """Return a time in UTC as text: 3 Nov 2026, 14:05 UTC."""
    at = moment.astimezone(UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def duration(span: timedelta | float | Decimal | None) -> str:
    """Return a duration in at most two units: 2 h 5 min. A negative one, from a clock that was set back, is 0."""
    if span is None:
        return "—"
    seconds = max(0.0, float(span.total_seconds() if isinstance(span, timedelta) else span))
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[str] = []
    left = round(seconds)
    for name, length in units:
        if left >= length and len(parts) < 2:
            parts.append(f"{left // length} {name}")
            left %= length
        elif parts:
            break
    return " ".join(parts)


def _round_duration(seconds: float) -> str:
    for name, length in (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3_600)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {name}{'' if count == 1 else 's'}"
    minutes = max(1, round(seconds / 60))
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def number(value: float | Decimal | None, digits: int | None = None) -> str:
    """Return a number with thousands separators; without decimals if it is whole, unless `digits` is given."""
    if value is None:
        return "—"
    if digits is None:
        digits = 0 if value == int(value) else 1
    return f"{value:,.{digits}f}"


def money(amount: float | Decimal | None) -> str:
    """Return an amount in US dollars: $12.50. Amounts below a cent keep two significant digits: $0.00034."""
    if amount is None:
        return "—"
    value = Decimal(amount)
    if value == 0 or abs(value) >= Decimal("0.01"):
        cents = abs(value).quantize(Decimal("0.01"), ROUND_HALF_UP)
        return f"{'-' if value < 0 else ''}${cents:,.2f}"
    return f"{'-' if value < 0 else ''}${abs(value).quantize(Decimal(1).scaleb(value.adjusted() - 1)):f}"


def percent(part: float | Decimal | None, digits: int = 0) -> str:
    """Return a fraction of one as a percentage."""
    return "—" if part is None else f"{float(part) * 100:.{digits}f}%"


def size(count: int | None) -> str:
    """Return a number of bytes with a unit: 1.5 MB."""
    if count is None:
        return "—"
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.1f}".removesuffix(".0") + f" {unit}"
        value /= 1024
    return f"{value:.1f}".removesuffix(".0") + " GB"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 ticket, 2 tickets."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
