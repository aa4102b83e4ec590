"""Key cuts: a compact encoding of how a key is split; a page is little larger than its items."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tavola.studio.api.data import QueryPageRequest, read_query_page
from tavola.studio.endpoint import encode_response
from tavola.studio.key_text import KeyPiece
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.queries.rows import KeyEncoder, KeyTextShape
from tavola.studio.recognition import Recogniser, designed_keys
from tests.studio.browsed import browsed, shop_design

TABLE = "studio-shop"
SHOP = shop_design().tables[0]


def pieces(shape: KeyTextShape, cut: tuple[int, ...], text: str) -> tuple[KeyPiece, ...]:
    """Return what the page makes of a cut, counting as JavaScript does."""
    units = text.encode("utf-16-le", "surrogatepass")
    result: list[KeyPiece] = []
    at = 0

    def taken(length: int) -> str:
        nonlocal at
        at += 2 * length
        return units[at - 2 * length : at].decode("utf-16-le", "surrogatepass")

    for number, field in enumerate(shape.fields):
        if shape.literals[number]:
            result.append(KeyPiece(taken(len(shape.literals[number]))))
        last = number == len(shape.fields) - 1
        left = len(units) // 2 - at // 2 - len(shape.literals[-1])
        written = taken(left if last else cut[number + 1])
        result.append(KeyPiece(written, field.name, field.values.get(written, written)))
    if shape.literals[-1]:
        result.append(KeyPiece(taken(len(shape.literals[-1]))))
    return tuple(result)


WORDS = st.one_of(
    st.sampled_from(
        ("ORDER#", "LINE#", "CUSTOMER#", "#", "ORDER", "007", "2026-01-02T00:00:00.000000Z", "a|b~c:", "é")
    ),
    st.text(max_size=6),
    st.sampled_from(("\U0001f600", "%23", "$23", "x")),
)
TEXTS = st.lists(WORDS, max_size=6).map("".join)


@given(TEXTS, TEXTS, TEXTS, TEXTS, st.booleans())
def test_a_cut_is_the_reading(pk: str, sk: str, gpk: str, gsk: str, designed: bool) -> None:
    """The page splits a key as the recogniser does; times are shown as they are written."""
    recogniser = Recogniser(designed_keys(SHOP), SHOP if designed else None)
    item: Any = {"PK": {"S": pk}, "SK": {"S": sk}, "GSI1PK": {"S": gpk}, "GSI1SK": {"S": gsk}, "x": {"S": ""}}
    response = recogniser.recognise(item)
    cutter = KeyEncoder(recogniser, "customers")

    cuts = cutter.encode(item, response)

    readings = recogniser.parse_keys(item, "customers", response)
    assert [cutter.shapes[cut[0]].attribute for cut in cuts] == [each.attribute for each in readings]
    for cut, reading in zip(cuts, readings, strict=True):
        result = pieces(cutter.shapes[cut[0]], cut, item[reading.attribute]["S"])
        moment = [each.field == "placed_at" for each in reading.pieces]
        assert [(each.text, each.field) for each in result] == [
            (each.text, each.field) for each in reading.pieces
        ]
        assert [each.value for each, skip in zip(result, moment, strict=True) if not skip] == [
            each.value for each, skip in zip(reading.pieces, moment, strict=True) if not skip
        ]


def test_the_value_of_a_padded_number_is_sent_once() -> None:
    """The stored form of a padded number is sent with the key's shape, not with each row."""
    recogniser = Recogniser(designed_keys(SHOP), SHOP)
    cutter = KeyEncoder(recogniser, None)
    items: list[Any] = [
        {"PK": {"S": f"ORDER#o{at}"}, "SK": {"S": f"LINE#{at % 2:03}"}, "_entity": {"S": "Line"}}
        for at in range(50)
    ]

    cuts = [cutter.encode(item, recogniser.recognise(item)) for item in items]

    assert set(cuts) == {((0,), (1,))}
    assert cutter.shapes[1].literals == ("LINE#", "")
    assert cutter.shapes[1].fields[0].values == {"000": "0", "001": "1"}


def test_a_page_weighs_little_more_than_its_items() -> None:
    """A row takes at most sixty bytes beside its item, whatever its entity and its keys say."""
    with browsed(orders=250) as shop:
        result = shop.run(read_query_page(shop.studio, QueryPageRequest(ItemQuery(TABLE))))

    items = encode_response([row.item for row in result.rows])
    response = encode_response((result.rows, result.entities, result.shapes))
    assert len(result.rows) == 1000
    assert len(response) - len(items) < 60 * len(result.rows) + 2_000
