"""Requests of the operations on Kinesis streaming destinations."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import ControlTableName, Shape, check_table_name
from tavola.protocol.message_style import MessageStyle

KinesisArn: TypeAlias = Annotated[str, msgspec.Meta(min_length=37, max_length=1024)]
Precision: TypeAlias = Literal["MILLISECOND", "MICROSECOND"]


class EnableKinesisStreamingConfiguration(Shape, frozen=True, kw_only=True):
    """Settings of a new destination."""

    approximate_creation_date_time_precision: Precision | None = None


class UpdateKinesisStreamingConfiguration(EnableKinesisStreamingConfiguration, frozen=True, kw_only=True):
    """New settings of a destination."""


class EnableKinesisStreamingDestinationRequest(Shape, frozen=True, kw_only=True):
    """The request of EnableKinesisStreamingDestination."""

    table_name: ControlTableName
    stream_arn: KinesisArn
    enable_kinesis_streaming_configuration: EnableKinesisStreamingConfiguration | None = None


class DisableKinesisStreamingDestinationRequest(
    EnableKinesisStreamingDestinationRequest, frozen=True, kw_only=True
):
    """The request of DisableKinesisStreamingDestination."""


class UpdateKinesisStreamingDestinationRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateKinesisStreamingDestination."""

    table_name: ControlTableName
    stream_arn: KinesisArn
    update_kinesis_streaming_configuration: UpdateKinesisStreamingConfiguration | None = None


class DescribeKinesisStreamingDestinationRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeKinesisStreamingDestination."""

    table_name: ControlTableName


def check_disable(request: DisableKinesisStreamingDestinationRequest, wording: MessageStyle) -> None:
    """Refuse settings for a destination that is being disabled."""
    check_table_name(request, wording)
    if request.enable_kinesis_streaming_configuration is not None:
        raise ValidationFault(
            "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"
        )


def check_update(request: UpdateKinesisStreamingDestinationRequest, wording: MessageStyle) -> None:
    """Refuse an update without settings."""
    check_table_name(request, wording)
    settings = request.update_kinesis_streaming_configuration
    if settings is None or settings.approximate_creation_date_time_precision is None:
        raise ValidationFault(
            "Streaming destination cannot be updated with given parameters: "
            "UpdateKinesisStreamingConfiguration cannot be null or contain only null values"
        )
