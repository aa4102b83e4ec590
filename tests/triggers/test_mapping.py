"""The settings of a mapping have AWS's names, defaults and limits."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from botocore.session import Session

from tavola.model import Consumer
from tavola.triggers import EventSourceMapping, FilterRefused, MappingRefused


def test_the_defaults_are_those_of_aws() -> None:
    """A mapping without a word is what Lambda makes of one for a stream of DynamoDB."""
    mapping = EventSourceMapping()

    assert (mapping.batch_size, mapping.maximum_batching_window_in_seconds) == (100, 0)
    assert (mapping.parallelization_factor, mapping.tumbling_window_in_seconds) == (1, 0)
    assert (mapping.maximum_retry_attempts, mapping.maximum_record_age_in_seconds) == (-1, -1)
    assert not mapping.bisect_batch_on_function_error
    assert not mapping.report_batch_item_failures
    assert mapping.filters.match({})


@pytest.mark.parametrize(
    ("setting", "member"),
    [
        ("batch_size", "BatchSize"),
        ("maximum_batching_window_in_seconds", "MaximumBatchingWindowInSeconds"),
        ("parallelization_factor", "ParallelizationFactor"),
        ("maximum_retry_attempts", "MaximumRetryAttemptsEventSourceMapping"),
        ("maximum_record_age_in_seconds", "MaximumRecordAgeInSeconds"),
        ("tumbling_window_in_seconds", "TumblingWindowInSeconds"),
    ],
)
def test_the_bounds_are_those_of_the_service_model(setting: str, member: str) -> None:
    """What Lambda's model bounds is taken up to its bounds and refused past them."""
    shape = Session().get_service_model("lambda").shape_for(member)
    least, most = shape.metadata["min"], shape.metadata["max"]

    for value in (least, most):
        assert getattr(EventSourceMapping(**{setting: value}), setting) == value
    refused: list[Any] = [least - 1, most + 1, "1", True, 1.5]
    for value in refused:
        with pytest.raises(MappingRefused, match=setting):
            EventSourceMapping(**{setting: value})


@pytest.mark.parametrize(
    "given",
    [
        {"maximum_record_age_in_seconds": 59},
        {"maximum_record_age_in_seconds": 0},
        {"starting_position": "AT_TIMESTAMP"},
        {"report_batch_item_failures": ("ReportBatchItemFailures",)},
        {"report_batch_item_failures": "yes"},
        {"bisect_batch_on_function_error": "yes"},
        {"filter_criteria": [{"eventName": ["INSERT"]}] * 6},
    ],
)
def test_what_lambda_refuses_is_refused(given: dict[str, Any]) -> None:
    """A setting that AWS does not take is refused by its name, and with what it takes."""
    with pytest.raises(MappingRefused, match=next(iter(given))):
        EventSourceMapping(**given)


def test_a_request_of_aws_is_a_mapping() -> None:
    """What CreateEventSourceMapping is asked can be given as it stands, names of stream and function included."""
    mapping = EventSourceMapping.from_request(
        {
            "EventSourceArn": "arn:…",
            "FunctionName": "projector",
            "BatchSize": 5,
            "StartingPosition": "LATEST",
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "FilterCriteria": {"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
        }
    )

    assert (mapping.batch_size, mapping.starting_position, mapping.report_batch_item_failures) == (
        5,
        "LATEST",
        True,
    )
    assert mapping.filters.match({"eventName": "INSERT"})
    assert not mapping.filters.match({"eventName": "REMOVE"})


@pytest.mark.parametrize(
    "types", [["Everything"], "ReportBatchItemFailures", ["ReportBatchItemFailures"] * 2, 1]
)
def test_other_response_types_are_refused(types: object) -> None:
    """Lambda knows one response type, in a list; none and an empty list leave the response unread."""
    with pytest.raises(MappingRefused, match="FunctionResponseTypes"):
        EventSourceMapping.from_request({"FunctionResponseTypes": types})
    nothing: list[object] = [[], None]
    for no_types in nothing:
        unread = EventSourceMapping.from_request({"FunctionResponseTypes": no_types})
        assert not unread.report_batch_item_failures


def test_a_consumers_mapping_has_its_settings() -> None:
    """A consumer of a design is run with the settings that its infrastructure is generated with, every one of them."""
    consumer = Consumer(
        "numbers",
        batch_size=7,
        window_s=2,
        starting="LATEST",
        parallelization=3,
        retries=4,
        max_age_s=90,
        bisect=True,
        report_batch_item_failures=False,
        events=("INSERT",),
    )
    mapping = EventSourceMapping.from_consumer(consumer)

    assert mapping == EventSourceMapping(
        batch_size=7,
        maximum_batching_window_in_seconds=2,
        starting_position="LATEST",
        parallelization_factor=3,
        maximum_retry_attempts=4,
        maximum_record_age_in_seconds=90,
        bisect_batch_on_function_error=True,
        filter_criteria=({"eventName": ["INSERT"]},),
    )
    assert EventSourceMapping.from_consumer(Consumer("numbers")).report_batch_item_failures


def test_a_setting_of_another_source_is_refused() -> None:
    """What belongs to Kafka or SQS is no setting of a stream of DynamoDB."""
    with pytest.raises(MappingRefused, match="does not apply to DynamoDB streams"):
        EventSourceMapping.from_request({"Topics": ["orders"]})


def test_every_setting_can_be_asked_for_in_the_words_of_aws() -> None:
    """Each field of a mapping has its member in the request."""
    settings = {field.name for field in fields(EventSourceMapping) if field.init}
    members = Session().get_service_model("lambda").shape_for("CreateEventSourceMappingRequest").members
    renamed = {"report_batch_item_failures": "FunctionResponseTypes"}  # the list has one possible member
    spelled = {renamed.get(name) or "".join(word.title() for word in name.split("_")) for name in settings}

    assert spelled <= set(members)
    for name in spelled - {"FilterCriteria", "FunctionResponseTypes", "StartingPosition"}:
        value = False if members[name].type_name == "boolean" else 60 if "Seconds" in name else 1
        assert EventSourceMapping.from_request({name: value}).batch_size >= 1


def test_a_wrong_pattern_is_refused_with_its_place() -> None:
    """A filter is looked at when the mapping is made, and not when the first record comes."""
    with pytest.raises(FilterRefused, match=r"dynamodb\.NewImage\.status\.S"):
        EventSourceMapping(filter_criteria='{"dynamodb": {"NewImage": {"status": {"S": "open"}}}}')
