"""Tournaments: matches in an index whose key consists of five attributes.

The key of `TournamentRegionIndex` is not a joined string: tournament and region together are its partition key, and round, bracket and
match its sort key. A query must give the whole partition key with equality; sort key attributes are given from the left without a gap, and
a range must be last. The client refuses other queries before sending them, and DynamoDB refuses them too.

Rounds are strings, so they sort alphabetically: FINALS, QUARTERFINALS, SEMIFINALS.
"""

from __future__ import annotations

from typing import Any

import tavola as tv
from tavola.apps.gallery.demonstrations import (
    Sample,
    StepResult,
    expect_async_refusal,
    expect_refusal,
    run_get,
    run_query,
)

TOURNAMENT = "WINTER2026"
REGION = "NA-EAST"


class Tournaments(tv.Table, name="gallery-tournaments", pk="PK", sk="SK"):
    """Matches, one item each."""

    by_region = tv.Gsi(
        pk=("tournamentId", "region"), sk=("round", "bracket", "matchId"), name="TournamentRegionIndex"
    )


class Match(
    tv.Entity, table=Tournaments, writes=(tv.WritePattern("A match", "put", per_second=2, item_bytes=250),)
):
    """A match of two teams."""

    match_id: tv.Attr[str] = tv.attr(name="matchId")
    tournament_id: tv.Attr[str] = tv.attr(name="tournamentId")
    region: tv.Attr[str]
    round: tv.Attr[str]
    bracket: tv.Attr[str]
    home: tv.Attr[str]
    away: tv.Attr[str]

    class Key(
        tv.PrimaryKey["Match"],
        pk="MATCH#{match_id}",
        sk="METADATA",
        access=tv.AccessPattern("A match by its id", per_second=20, items=1, item_bytes=250),
    ):
        match_id: str

    class InRegion(
        tv.Query["Match"],
        on=Tournaments.by_region,
        access=tv.AccessPattern(
            "The matches of a tournament in a region, by round and bracket",
            per_second=40,
            items=14,
            item_bytes=250,
        ),
    ):
        tournament_id: str
        region: str
        round: tv.Sort[str] = tv.sort()
        bracket: tv.Sort[str] = tv.sort()
        match_id: tv.Sort[str] = tv.sort()


def sample_matches() -> tuple[Match, ...]:
    """Return two regions of a tournament, and another tournament."""
    matches: list[Match] = []
    for tournament, region in ((TOURNAMENT, REGION), (TOURNAMENT, "EU-WEST"), ("SUMMER2026", REGION)):
        rounds = (("QUARTERFINALS", 4), ("SEMIFINALS", 2), ("FINALS", 1))
        for bracket in ("UPPER", "LOWER"):
            for played, count in rounds:
                for number in range(1, count + 1):
                    matches.append(
                        Match(
                            match_id=f"match-{len(matches) + 1:03}",
                            tournament_id=tournament,
                            region=region,
                            round=played,
                            bracket=bracket,
                            home=f"team-{2 * number - 1:02}",
                            away=f"team-{2 * number:02}",
                        )
                    )
    return tuple(matches)


def region_matches() -> Match.InRegion:
    """Return the selection that all demonstrations start from."""
    return Match.InRegion(tournament_id=TOURNAMENT, region=REGION)


SAMPLE = Sample(
    "tournaments",
    "Tournaments",
    summary="An index with a multi-attribute key, and the rules for querying it.",
    source="Patterns and best practices: multi-attribute composite keys",
    tables=(Tournaments,),
    entities=sample_matches,
)


@SAMPLE.demonstrate("levels", "Query each level of the sort key")
async def levels(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query each level of the sort key."""
    semifinals = region_matches().round.eq("SEMIFINALS")
    return (
        await run_query(db, "Partition key: all matches of the region", region_matches()),
        await run_query(db, "Plus round", semifinals),
        await run_query(db, "Plus bracket", semifinals.bracket.eq("UPPER")),
        await run_query(db, "Plus match", semifinals.bracket.eq("UPPER").match_id.eq("match-005")),
        await run_get(db, "The same match by its ID", Match.Key(match_id="match-005")),
    )


@SAMPLE.demonstrate("ranges", "Query ranges")
async def ranges(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query with a range, which is allowed on any part but must be last."""
    return (
        await run_query(db, "Rounds from QUARTERFINALS on", region_matches().round.gte("QUARTERFINALS")),
        await run_query(
            db,
            "One round, brackets from L to M",
            region_matches().round.eq("SEMIFINALS").bracket.between("L", "M"),
        ),
        await run_query(db, "Rounds that begin with S", region_matches().round.begins_with("S")),
    )


@SAMPLE.demonstrate("refusals", "Send invalid queries")
async def refusals(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Build and send queries that the index cannot serve."""
    incomplete: dict[str, Any] = {"tournament_id": TOURNAMENT}
    return (
        expect_refusal("Incomplete partition key", lambda: Match.InRegion(**incomplete)),
        expect_refusal("Bracket without round", lambda: region_matches().bracket.eq("UPPER")),
        expect_refusal(
            "Bracket after a range of rounds",
            lambda: _part(region_matches().round.gt("A"), "bracket").eq("UPPER"),
        ),
        expect_refusal(
            "Round given twice", lambda: _part(region_matches().round.eq("FINALS"), "round").eq("FINALS")
        ),
        await _send_query(db, "Incomplete partition key, sent", "tournamentId = :t"),
        await _send_query(db, "Range on the partition key, sent", "tournamentId = :t AND #r > :r"),
        await _send_query(db, "Bracket without round, sent", "tournamentId = :t AND #r = :r AND #b = :b"),
        await _send_query(
            db,
            "Bracket after a range, sent",
            "tournamentId = :t AND #r = :r AND #o > :o AND #b = :b",
        ),
        await _send_query(
            db, "Reserved word without a placeholder, sent", "tournamentId = :t AND region = :r"
        ),
    )


def _part(selection: tv.Selection[Match], name: str) -> Any:
    return getattr(selection, name)  # a type checker would refuse it


async def _send_query(db: tv.AsyncConnection, what: str, condition: str) -> StepResult:
    names = {"#r": "region", "#o": "round", "#b": "bracket"}
    values = {":t": TOURNAMENT, ":r": REGION, ":o": "FINALS", ":b": "UPPER"}
    request: dict[str, Any] = {
        "TableName": db.context.name_of(Tournaments),
        "IndexName": "TournamentRegionIndex",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {
            name: {"S": value} for name, value in values.items() if f" {name}" in condition
        },
    }
    if used := {name: attribute for name, attribute in names.items() if name in condition}:
        request["ExpressionAttributeNames"] = used
    return await expect_async_refusal(what, db.call("Query", request))
