"""Detection limits: the smallest fault of each kind that the attacks of a claim noticed."""

from typing import Any

from .evidence import Claim


def sentence(found: dict[str, Any]) -> str:
    """What the attacks would have noticed of one kind of fault, and what they did not."""
    noticed, missed = found["noticed"], found["missed"]
    if not noticed:
        return f"would not have noticed: {missed['words']}"
    return f"would have noticed: {noticed['words']}" + (
        f"; not noticed: {missed['words']}" if missed else "")


def sentences(claim: Claim) -> list[str]:
    """A sentence for each detection limit of a claim; none if they were not measured."""
    return [sentence(found) for found in claim.result.get("detection_limits") or []]


def rows(claim: Claim) -> list[tuple[str, str, str]]:
    """A row for each detection limit: the claim, what it would have noticed, what it did not."""
    return [(claim.id, *((found[key] or {}).get("words", "") for key in ("noticed", "missed")))
            for found in claim.result.get("detection_limits") or []]


HEADINGS = ("", "would have noticed", "not noticed")
