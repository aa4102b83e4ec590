"""Filter patterns choose records as Lambda's do, quirks included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.triggers import FilterRefused, parse_criteria


def record(**image: Any) -> dict[str, Any]:
    return {
        "eventName": "MODIFY",
        "eventID": "1",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": {
            "Keys": {"id": {"S": "o#1"}},
            "NewImage": image,
            "SizeBytes": 26,
            "SequenceNumber": "111",
        },
    }


def image(**fields: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": fields}}


RECORD = record(
    status={"S": "Open"},
    total={"N": "42"},
    paid={"BOOL": True},
    tags={"SS": ["red", "blue"]},
    address={"M": {"city": {"S": "Rome"}}},
    lines={"L": [{"M": {"sku": {"S": "a"}}}, {"M": {"sku": {"S": "b"}}}]},
    empty={"S": ""},
    none={"L": []},
)

MATCHING = [
    {},
    {"eventName": ["MODIFY"]},
    {"eventName": ["INSERT", "MODIFY"]},
    {"userIdentity": {"principalId": ["dynamodb.amazonaws.com"], "type": ["Service"]}},
    {"dynamodb": {"Keys": {"id": {"S": [{"prefix": "o#"}]}}}},
    {"dynamodb": {"Keys": {"id": {"S": [{"suffix": "#1"}]}}}},
    {"dynamodb": {"SizeBytes": [26]}},
    {"dynamodb": {"SizeBytes": [26.0]}},
    {"dynamodb": {"SizeBytes": [{"numeric": [">", 0, "<=", 26]}]}},
    {"dynamodb": {"SizeBytes": [{"numeric": ["=", 26]}]}},
    {"dynamodb": {"SizeBytes": [{"anything-but": [1, 2]}]}},
    image(status={"S": [{"equals-ignore-case": "oPEN"}]}),
    image(status={"S": [{"anything-but": "Closed"}]}),
    image(status={"S": [{"anything-but": ["Closed", "Lost"]}]}),
    image(status={"S": [{"anything-but": {"prefix": "Cl"}}]}),
    image(status={"S": [{"anything-but": {"suffix": ["ed", "st"]}}]}),
    image(status={"S": [{"anything-but": {"equals-ignore-case": "closed"}}]}),
    image(total={"N": ["42"]}),
    image(total={"N": [{"prefix": "4"}]}),
    image(paid={"BOOL": [True]}),
    image(tags={"SS": ["blue"]}),
    image(tags={"SS": [{"anything-but": "blue"}]}),
    image(address={"M": {"city": {"S": ["Rome"]}}}),
    image(lines={"L": {"M": {"sku": {"S": ["b"]}}}}),
    image(empty={"S": [""]}),
    image(status={"S": [{"exists": True}]}),
    image(gone={"S": [{"exists": False}]}),
    image(gone=[{"exists": False}]),
    # `exists` looks at leaves: `status` is an object and so there is no leaf of that name.
    image(status=[{"exists": False}]),
    image(none={"L": [{"exists": False}]}),
    {"dynamodb": {"OldImage": {"status": {"S": [{"exists": False}]}}}},
    {"$or": [{"eventName": ["INSERT"]}, {"dynamodb": {"SizeBytes": [26]}}]},
    {"eventName": ["MODIFY"], "$or": [{"eventID": ["1"]}, {"eventID": ["2"]}]},
    image(**{"$or": [{"status": {"S": ["Closed"]}}, {"total": {"N": ["42"]}}]}),
]

FOREIGN = [
    {"eventName": ["INSERT"]},
    {"eventName": ["modify"]},
    {"eventName": ["MODIFY"], "eventID": ["2"]},
    {"dynamodb": {"Keys": {"id": {"S": [{"prefix": "c#"}]}}}},
    {"dynamodb": {"SizeBytes": ["26"]}},
    {"dynamodb": {"SizeBytes": [True]}},
    {"dynamodb": {"SizeBytes": [{"numeric": ["<", 26]}]}},
    image(total={"N": [42]}),
    image(total={"N": [{"numeric": [">", 1]}]}),
    image(total={"S": ["42"]}),
    image(paid={"BOOL": ["true"]}),
    image(paid={"BOOL": [1]}),
    image(status={"S": [{"anything-but": ["Open"]}]}),
    image(status={"S": [{"anything-but": {"prefix": ["Op", "x"]}}]}),
    image(gone={"S": [{"anything-but": ["x"]}]}),
    image(tags={"SS": ["green"]}),
    image(lines={"L": {"M": {"sku": {"S": ["c"]}}}}),
    image(status={"S": [None]}),
    image(gone={"S": [None]}),
    image(status={"S": [{"exists": False}]}),
    image(status=[{"exists": True}]),
    image(gone={"S": [{"exists": True}]}),
    {"$or": [{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}]},
    {"eventName": ["INSERT"], "$or": [{"eventID": ["1"]}, {"eventID": ["2"]}]},
]


@pytest.mark.parametrize("pattern", MATCHING, ids=json.dumps)
def test_a_pattern_matches(pattern: dict[str, Any]) -> None:
    """Fields must all hold; of the rules of one field, and of the elements of a list, one must."""
    assert parse_criteria([pattern]).match(RECORD)
    assert parse_criteria({"Filters": [{"Pattern": json.dumps(pattern)}]}).match(RECORD)


@pytest.mark.parametrize("pattern", FOREIGN, ids=json.dumps)
def test_a_pattern_does_not_match(pattern: dict[str, Any]) -> None:
    """Types count: numbers of DynamoDB are text, capitals differ, an absent field has no value."""
    assert not parse_criteria([pattern]).match(RECORD)


def test_null_is_a_value() -> None:
    """A null rule holds for null, and not for a field that is not there."""
    criteria = parse_criteria([{"userIdentity": [None]}])

    assert criteria.match({"userIdentity": None})
    assert not criteria.match({})


def test_filters_are_alternatives() -> None:
    """One of the filters is enough."""
    criteria = parse_criteria([{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}])

    assert [criteria.match({"eventName": name}) for name in ("INSERT", "MODIFY", "REMOVE")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "JSON object"),
        ('{"eventName": "INSERT"}', r'eventName: put the value in an array: \["INSERT"\]'),
        ('{"eventName": []}', "empty array"),
        ('{"dynamodb": {}}', "empty object"),
        ('{"eventName": [{"prefix": 1}]}', "prefix takes text"),
        ('{"eventName": [{"like": "x"}]}', "unknown rule 'like'"),
        ('{"eventName": [{"prefix": "a", "suffix": "b"}]}', "is not a rule"),
        ('{"eventName": [["INSERT"]]}', "is not a rule"),
        ('{"eventName": [{"exists": "yes"}]}', "true or false"),
        ('{"eventName": [{"anything-but": []}]}', "anything-but"),
        ('{"eventName": [{"anything-but": {"exists": true}}]}', "anything-but"),
        ('{"eventName": [{"anything-but": [null]}]}', "anything-but"),
        ('{"$or": [{"eventName": ["INSERT"]}]}', "at least two patterns"),
        ('{"a": {"$or": {}}}', r"a\.\$or"),
        ('{"a": [{"numeric": ["~", 1]}]}', "numeric is"),
        ('{"a": [{"numeric": ["<", 1, ">", 0]}]}', "numeric is"),
        ('{"a": [{"numeric": [">", 5, "<", 1]}]}', "numeric is"),
        ('{"a": [{"numeric": [">", "1"]}]}', "numeric is"),
        ('{"eventName": ["%s"]}' % ("x" * 4096), "at most 4096"),
        (7, "JSON object"),
    ],
)
def test_a_wrong_pattern_is_refused(pattern: object, words: str) -> None:
    """What Lambda refuses is refused with the place and what would be right."""
    with pytest.raises(FilterRefused, match=words):
        parse_criteria([pattern])


@pytest.mark.parametrize("given", [7, {"Filters": [7]}, {"Filters": [{"Patern": "{}"}]}])
def test_criteria_of_another_shape_are_refused(given: object) -> None:
    """FilterCriteria has one shape, and patterns alone are a list."""
    with pytest.raises(FilterRefused):
        parse_criteria(given)


def test_what_never_matches_is_remarked() -> None:
    """AWS takes a numeric rule on a number of DynamoDB, which never holds; whoever wrote it is told."""
    criteria = parse_criteria(
        [image(total={"N": [{"numeric": [">", 5]}]}), image(total={"N": [5]}), {"eventname": ["INSERT"]}]
    )

    first, second, third = criteria.remarks()
    assert "dynamodb.NewImage.total.N never matches" in first
    assert "dynamodb.NewImage.total.N never matches" in second
    assert "Records have no field eventname" in third
    assert parse_criteria([image(total={"N": ["5"]}), {"eventName": ["INSERT"]}]).remarks() == ()
