"""What the comparisons of the baseline with itself (A/A) found, in a sentence."""

from collections import Counter

from .evidence import Claim


def sentence(claim: Claim) -> str:
    """Empty if the claim has no comparisons."""
    judged = [one for one in claim.effects if not one["recorded_only"]
              and one["control"]["low"] is not None and one["control"]["high"] is not None]
    if not judged:
        return ""
    least, most = (lambda one: one["control"]["low"]), (lambda one: one["control"]["high"])
    none = [1.0 if one.get("ratio", claim.result["unit"] != "us") else 0.0 for one in judged]
    apart = sum(least(one) > same or most(one) < same for one, same in zip(judged, none))
    beyond = sum(most(one) < one["threshold"] if one.get("direction") == "above" else
                 least(one) > one["threshold"] for one in judged)
    return (f"The baseline was compared with itself (A/A) in {len(judged)} of the comparisons: "
            f"{apart} of the intervals exclude that there is no difference, {beyond} lie beyond "
            "the threshold.")


def notes(claim: Claim) -> list[str]:
    """What the comparisons of the baseline with itself found, and each note of the attacks once,
    with its number: every seed and process makes its own."""
    found = Counter(claim.notes)
    return [*filter(None, [sentence(claim)]),
            *(text if count == 1 else f"{text} ({count} times)" for text, count in found.items())]
