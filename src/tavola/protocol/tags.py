"""Requests of the tag operations, and the checks that need no resource."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from tavola.limits import TAG_KEY_CHARACTERS_MAX, TAG_VALUE_CHARACTERS_MAX, TAGS_MAX
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import Shape
from tavola.protocol.message_style import MessageStyle

_INVALID = "One or more parameter values were invalid: "
_TOO_MANY = "Number of Tags exceed the current limit for the provided ResourceArn"
_SIGNS = frozenset("_.:/=+-@")  # allowed besides letters, digits and spaces of any script


class Tag(Shape, frozen=True, kw_only=True):
    """A tag of a table; both members are present once checked."""

    key: str | None = None
    value: str | None = None


class TagResourceRequest(Shape, frozen=True, kw_only=True):
    """The request of TagResource."""

    resource_arn: str | None = None
    tags: list[Tag]


class UntagResourceRequest(Shape, frozen=True, kw_only=True):
    """The request of UntagResource."""

    resource_arn: str | None = None
    tag_keys: list[str]


class ListTagsOfResourceRequest(Shape, frozen=True, kw_only=True):
    """The request of ListTagsOfResource."""

    resource_arn: str | None = None
    next_token: str | None = None


def check_tag(request: TagResourceRequest, wording: MessageStyle) -> None:
    """Refuse invalid tags."""
    _check_arn(request.resource_arn)
    if not request.tags:
        raise ValidationFault("Atleast one Tag needs to be provided as Input.")
    check_tags(request.tags)


def check_untag(request: UntagResourceRequest, wording: MessageStyle) -> None:
    """Refuse an empty list of keys."""
    _check_arn(request.resource_arn)
    if not request.tag_keys:
        raise ValidationFault("Atleast one Tag Key needs to be provided as Input.")
    for key in request.tag_keys:
        _check_key(key)
    if len(request.tag_keys) > TAGS_MAX:
        raise ValidationFault(_TOO_MANY)


def check_list_tags(request: ListTagsOfResourceRequest, wording: MessageStyle) -> None:
    """Refuse a resource that cannot have tags."""
    _check_arn(request.resource_arn)


def check_tags(tags: Sequence[Tag]) -> None:
    """Refuse duplicate tags, reserved prefixes, and too many tags."""
    for tag in tags:
        _check_key(tag.key)
        if tag.value is None or not _fits(tag.value, 0, TAG_VALUE_CHARACTERS_MAX):
            value = "null" if tag.value is None else tag.value
            raise ValidationFault(f"The Tag Value provided is invalid, Value: {value}")
    keys = [tag.key for tag in tags if tag.key is not None]
    for place, key in enumerate(keys):
        if key.startswith("aws:"):
            raise ValidationFault(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if key in keys[:place]:
            raise ValidationFault(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
    if len(keys) > TAGS_MAX:
        raise ValidationFault(_TOO_MANY)


def tags_by_key(tags: Sequence[Tag]) -> dict[str, str]:
    """Return checked tags as a dictionary."""
    return {tag.key: tag.value for tag in tags if tag.key is not None and tag.value is not None}


def _check_key(key: str | None) -> None:
    if key is None or not _fits(key, 1, TAG_KEY_CHARACTERS_MAX):
        raise ValidationFault(f"The Tag Key provided is invalid, Key: {'null' if key is None else key}")


def _fits(text: str, characters_min: int, characters_max: int) -> bool:
    """Return whether a text has an allowed length and only allowed characters."""
    return characters_min <= len(text) <= characters_max and all(
        sign in _SIGNS or unicodedata.category(sign)[0] in "LNZ" for sign in text
    )


def _check_arn(arn: str | None) -> None:
    if arn is None:
        raise ValidationFault("Invalid TableArn")
    if not arn.startswith("arn:"):
        raise ValidationFault(f"{_INVALID}ARNs must start with 'arn:': {arn}")
    parts = parse_resource_arn(arn)
    if parts is None and ":dynamodb:" in arn and ":table/" in arn:
        raise ValidationFault(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    if parts is None or parts.kind not in ("table", "stream", "index"):
        raise ValidationFault(f"{_INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    if parts.kind == "index":
        raise ValidationFault(
            f"{_INVALID}Invalid resource arn provided, only table or stream is accepted. "
            f"Provided resource arn: {arn}"
        )
