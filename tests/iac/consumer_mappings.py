"""The event source mappings of generated infrastructure, read back as the settings that a trigger runs with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tavola.iac import InfrastructurePlan, build_template, render_template, render_terraform
from tavola.iac.formats import read_design
from tavola.triggers import EventSourceMapping

FORMATS = ("yaml", "tf")


def render(plan: InfrastructurePlan, ending: str) -> str:
    """Return what `tavola iac` writes in a format."""
    return render_template(plan) if ending == "yaml" else render_terraform(plan)


def imported_mapping(text: str, ending: str, folder: Path) -> EventSourceMapping:
    """Return the mapping of the one consumer in a template or module, as the importer reads it."""
    file = folder / f"infrastructure.{ending}"
    file.write_text(text, encoding="utf-8")
    (consumer,) = [one for table in read_design(file).design.tables for one in table.consumers]
    return EventSourceMapping.from_consumer(consumer)


def template_mappings(plan: InfrastructurePlan) -> Iterator[EventSourceMapping]:
    """Yield the mappings of a plan's template from their properties alone, as CreateEventSourceMapping gets them."""
    for resource in build_template(plan)["Resources"].values():
        if resource["Type"] == "AWS::Lambda::EventSourceMapping":
            yield EventSourceMapping.from_request(resource["Properties"])
