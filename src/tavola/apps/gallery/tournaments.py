"""Tournaments: matches under an index keyed by five of their own attributes.

The key of `TournamentRegionIndex` is no text that somebody joined: tournament and region together are its partition, round, bracket and match
its order, each as it stands in the match. All of the partition is given, with equality; the order is asked from the left, without a gap, and a
range ends the question. What breaks these rules is refused by the client before anything is sent, and by DynamoDB if it is sent all the same.

Rounds are text, as in the document, so they sort by their letters: FINALS, QUARTERFINALS, SEMIFINALS.
"""

from __future__ import annotations

from typing import Any

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Selection,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, got, refused, refused_later

TOURNAMENT = "WINTER2026"
REGION = "NA-EAST"


class Tournaments(Table, name="gallery-tournaments", pk="PK", sk="SK"):
    """Matches, each an item of its own."""

    by_region = Gsi(
        pk=("tournamentId", "region"), sk=("round", "bracket", "matchId"), name="TournamentRegionIndex"
    )


class Match(
    Entity, table=Tournaments, writes=(WritePattern("A match", "put", per_second=2, item_bytes=250),)
):
    """A match of two teams."""

    match_id: Attr[str] = attr(name="matchId")
    tournament_id: Attr[str] = attr(name="tournamentId")
    region: Attr[str]
    round: Attr[str]
    bracket: Attr[str]
    home: Attr[str]
    away: Attr[str]

    class Key(
        PrimaryKey["Match"],
        pk="MATCH#{match_id}",
        sk="METADATA",
        access=AccessPattern("A match by its id", per_second=20, items=1, item_bytes=250),
    ):
        match_id: str

    class InRegion(
        Query["Match"],
        on=Tournaments.by_region,
        access=AccessPattern(
            "The matches of a tournament in a region, by round and bracket",
            per_second=40,
            items=14,
            item_bytes=250,
        ),
    ):
        tournament_id: str
        region: str
        round: Sort[str] = sort()
        bracket: Sort[str] = sort()
        match_id: Sort[str] = sort()


def matches() -> tuple[Match, ...]:
    """Return two regions of a tournament, and another tournament."""
    made: list[Match] = []
    for tournament, region in ((TOURNAMENT, REGION), (TOURNAMENT, "EU-WEST"), ("SUMMER2026", REGION)):
        rounds = (("QUARTERFINALS", 4), ("SEMIFINALS", 2), ("FINALS", 1))
        for bracket in ("UPPER", "LOWER"):
            for played, count in rounds:
                for number in range(1, count + 1):
                    made.append(
                        Match(
                            match_id=f"match-{len(made) + 1:03}",
                            tournament_id=tournament,
                            region=region,
                            round=played,
                            bracket=bracket,
                            home=f"team-{2 * number - 1:02}",
                            away=f"team-{2 * number:02}",
                        )
                    )
    return tuple(made)


def here() -> Match.InRegion:
    """Return the question that all demonstrations begin with."""
    return Match.InRegion(tournament_id=TOURNAMENT, region=REGION)


async def levels(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask at each level of the sort key."""
    semifinals = here().round.eq("SEMIFINALS")
    return (
        await asked(db, "Both attributes of the partition: the region's matches", here()),
        await asked(db, "And the round", semifinals),
        await asked(db, "And the bracket", semifinals.bracket.eq("UPPER")),
        await asked(db, "And the match", semifinals.bracket.eq("UPPER").match_id.eq("match-005")),
        await got(db, "The same match by its id", Match.Key(match_id="match-005")),
    )


async def ranges(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask with a range, which may stand on any part and is the last."""
    return (
        await asked(db, "Rounds from QUARTERFINALS on, by letter", here().round.gte("QUARTERFINALS")),
        await asked(
            db,
            "One round, brackets from L to M: the lower one",
            here().round.eq("SEMIFINALS").bracket.between("L", "M"),
        ),
        await asked(db, "Rounds that begin with an S", here().round.begins_with("S")),
    )


async def refusals(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask what an index of several attributes cannot answer: of the client, and of DynamoDB past it."""
    half: dict[str, Any] = {"tournament_id": TOURNAMENT}
    return (
        refused("Half of the partition", lambda: Match.InRegion(**half)),
        refused("The bracket without the round", lambda: here().bracket.eq("UPPER")),
        refused(
            "The bracket after a range of rounds",
            lambda: _part(here().round.gt("A"), "bracket").eq("UPPER"),
        ),
        refused("The round twice", lambda: _part(here().round.eq("FINALS"), "round").eq("FINALS")),
        await _sent(db, "Half of the partition, sent", "tournamentId = :t"),
        await _sent(db, "A range on the partition, sent", "tournamentId = :t AND #r > :r"),
        await _sent(db, "The bracket without the round, sent", "tournamentId = :t AND #r = :r AND #b = :b"),
        await _sent(
            db,
            "The bracket after a range, sent",
            "tournamentId = :t AND #r = :r AND #o > :o AND #b = :b",
        ),
        await _sent(db, "A reserved word without a placeholder, sent", "tournamentId = :t AND region = :r"),
    )


def _part(question: Selection[Match], name: str) -> Any:
    return getattr(question, name)  # what a type checker would not let pass


async def _sent(db: AsyncConnection, what: str, condition: str) -> Told:
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
    return await refused_later(what, db.call("Query", request))


SAMPLE = Sample(
    name="tournaments",
    title="Tournaments",
    shows="An index keyed by several attributes of their own types, and every rule of asking it.",
    source="Patterns and best practices: multi-attribute composite keys",
    tables=(Tournaments,),
    entities=matches,
    demonstrations=(
        Demonstration("levels", "At each level of the sort key", levels),
        Demonstration("ranges", "Ranges: one, and last", ranges),
        Demonstration("refusals", "What is refused", refusals),
    ),
)
