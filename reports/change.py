"""Whether two runs can be compared, and how a claim's result changed between them.

`tollens gate`, which is for pipelines, has the same rules.
"""

from typing import Any

from . import thresholds
from .evidence import Claim, Evidence


def difference(one: Evidence, other: Evidence) -> str:
    """Why two runs cannot be compared; "" if they can."""
    for run in (one, other):
        if run.results.get("under"):
            return f"{run.folder} was run with the injected fault {run.results['under']}"
        if run.run.get("filter"):
            return f"{run.folder} ran only the attacks {run.run['filter']}"
    here, there = one.results["device"], other.results["device"]
    if (here["kind"], here["name"]) != (there["kind"], there["name"]):
        return (f"{one.folder} ran on {here['name']} ({here['kind']}) and {other.folder} on "
                f"{there['name']} ({there['kind']})")
    if one.results["mode"] != other.results["mode"]:
        return (f"{one.folder} is a {one.results['mode']} run and {other.folder} is a "
                f"{other.results['mode']} run")
    for claim in one.claims:
        found = other.claim(claim.id)
        for key in ("threshold", "unit", "direction"):
            if found is not None and claim.result[key] != found.result[key]:
                return (f"{claim.id} has the {key} {claim.result[key]} in {one.folder} and "
                        f"{found.result[key]} in {other.folder}")
    return ""


def ends(row: dict[str, Any]) -> tuple[float, float]:
    """An effect's interval, negated where less is worse, so that more is worse."""
    low = row["effect"] if row.get("low") is None else row["low"]
    high = row["effect"] if row.get("high") is None else row["high"]
    return (-high, -low) if row["direction"] == "above" else (low, high)


def change(before: dict[str, Any] | None, now: dict[str, Any] | None,
           tolerance: float) -> tuple[str, str]:
    """A word and a reason."""
    kinds = [row["verdict"] if row else "not_tested" for row in (before, now)]
    if before is None or now is None or "not_tested" in kinds:
        if kinds == ["not_tested", "not_tested"]:
            return "", ""
        return ("new", "") if kinds[0] == "not_tested" else ("cannot tell", "no longer tested")
    if kinds[1] == "falsified":
        return "WORSE", now["reason"] or "falsified"
    if kinds[1] == "inconclusive":
        return "cannot tell", now["reason"] or "inconclusive"
    if kinds[0] == "falsified":
        return "better", "it was falsified before"
    if before["effect"] is None or now["effect"] is None:
        return "cannot tell", "there is no effect to compare"
    (old_low, old_high), (low, high) = ends(before), ends(now)
    if low > old_high + tolerance:
        return "WORSE", f"by more than the tolerance of {tolerance:g} {now['unit']}"
    if high < old_low - tolerance:
        return "better", f"by more than the tolerance of {tolerance:g} {now['unit']}"
    if high <= old_low + tolerance:
        return "same", ""
    return "cannot tell", f"the intervals are too wide for a tolerance of {tolerance:g}"


def tolerance_of(name: str) -> float | None:
    """None for a claim of a plugin, which this repository does not know."""
    limits = thresholds.load()[0].get(name)
    return float(limits["tolerance"]) if limits else None


def of_claim(before: Claim | None, now: Claim | None) -> tuple[str, str]:
    """A word and a reason. Without a known tolerance only a verdict can change."""
    claim = now or before
    tolerance = tolerance_of(claim.id) if claim is not None else None
    return change(before and before.result, now and now.result,
                  float("inf") if tolerance is None else tolerance)
