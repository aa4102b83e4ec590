"""Whether a design runs on each DynamoDB-compatible engine, capability by capability, with sources."""

from __future__ import annotations

from dataclasses import replace

from tavola.design.targets import Capability, FeatureUse, TargetFile, capabilities, find_uses, targets
from tavola.studio.designs import DesignAnalysis, find_analysis
from tavola.studio.endpoint import Endpoint
from tavola.studio.studio import Studio
from tavola.studio.types import DOCUMENT_BYTES_MAX, ApiMessage, DesignRequest


class NeededCapability(ApiMessage):
    """A capability that the design needs, and where it is used."""

    capability: Capability
    uses: tuple[FeatureUse, ...]


class TargetMatrix(ApiMessage):
    """The capabilities a design needs and each engine's answers to them, as `tavola check` finds them."""

    targets: tuple[TargetFile, ...]  # with the answers to `needed` only
    needed: tuple[NeededCapability, ...]


async def target_matrix(studio: Studio, params: DesignRequest) -> TargetMatrix:
    """Return every engine's support for the capabilities a design needs."""
    analysis = await find_analysis(studio, params.design, params.document)
    return await studio.run_in_thread(
        lambda: analysis.get_or_compute("targets", lambda: _build_matrix(analysis))
    )


def _build_matrix(analysis: DesignAnalysis) -> TargetMatrix:
    uses: dict[str, list[FeatureUse]] = {}
    for use in find_uses(analysis.design):
        uses.setdefault(use.capability, []).append(use)
    return TargetMatrix(
        tuple(
            replace(target, answers={name: target.answer(name) for name in uses})
            for target in targets().values()
        ),
        tuple(NeededCapability(capabilities()[name], tuple(needed)) for name, needed in uses.items()),
    )


ENDPOINTS = (Endpoint("POST", "/design/targets", target_matrix, body_bytes_max=DOCUMENT_BYTES_MAX),)
