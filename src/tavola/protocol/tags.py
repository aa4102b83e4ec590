"""Tags: the shapes of the tag operations, and what they refuse without the resource."""

from __future__ import annotations

from collections.abc import Sequence

from tavola.limits import TAG_KEY_CHARACTERS_MAX, TAG_VALUE_CHARACTERS_MAX, TAGS_MAX
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import Shape
from tavola.protocol.wording import Wording


class Tag(Shape, frozen=True, kw_only=True):
    """A label of a table or stream."""

    key: str
    value: str


class TagResourceRequest(Shape, frozen=True, kw_only=True):
    """What TagResource is asked."""

    resource_arn: str | None = None
    tags: list[Tag]


class UntagResourceRequest(Shape, frozen=True, kw_only=True):
    """What UntagResource is asked."""

    resource_arn: str | None = None
    tag_keys: list[str]


class ListTagsOfResourceRequest(Shape, frozen=True, kw_only=True):
    """What ListTagsOfResource is asked."""

    resource_arn: str | None = None
    next_token: str | None = None


def check_tag(request: TagResourceRequest, wording: Wording) -> None:
    """Refuse tags that no resource takes."""
    _check_arn(request.resource_arn)
    if not request.tags:
        raise ValidationFault("Atleast one Tag needs to be provided as Input.")
    check_tags(request.tags)


def check_untag(request: UntagResourceRequest, wording: Wording) -> None:
    """Refuse to take away nothing."""
    _check_arn(request.resource_arn)
    if not request.tag_keys:
        raise ValidationFault("Atleast one Tag Key needs to be provided as Input.")
    for key in request.tag_keys:
        _check_key(key)


def check_list_tags(request: ListTagsOfResourceRequest, wording: Wording) -> None:
    """Refuse what cannot have tags."""
    _check_arn(request.resource_arn)


def check_tags(tags: Sequence[Tag]) -> None:
    """Refuse tags that repeat, that take AWS's prefix, or that are too many for one resource."""
    keys = [tag.key for tag in tags]
    for tag in tags:
        _check_key(tag.key)
        if len(tag.value) > TAG_VALUE_CHARACTERS_MAX:
            raise ValidationFault(f"The Tag Value provided is invalid, Value: {tag.value}")
    for place, key in enumerate(keys):
        if key.startswith("aws:"):
            raise ValidationFault(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if key in keys[:place]:
            raise ValidationFault(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
    if len(keys) > TAGS_MAX:
        raise ValidationFault("Number of Tags exceed the current limit for the provided ResourceArn")


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= TAG_KEY_CHARACTERS_MAX:
        raise ValidationFault(f"The Tag Key provided is invalid, Key: {key}")


def _check_arn(arn: str | None) -> None:
    if arn is None:
        raise ValidationFault("Invalid TableArn")
    parts = parse_resource_arn(arn)
    if parts is None:
        raise ValidationFault(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    if parts.kind not in ("table", "stream"):
        raise ValidationFault(
            "One or more parameter values were invalid: Invalid resource arn provided, only table or stream "
            f"is accepted. Provided resource arn: {arn}"
        )
