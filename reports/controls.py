"""What the comparisons of the baseline with itself (A/A) found, in a sentence."""

from collections import Counter

from . import words
from .evidence import Claim


def sentence(claim: Claim) -> str:
    """Empty if the claim has no comparisons."""
    judged = [one for one in claim.effects if not one["recorded_only"]
              and one["control"]["low"] is not None and one["control"]["high"] is not None]
    if not judged:
        return ""
    apart = beyond = 0
    for one in judged:
        low, high, threshold = one["control"]["low"], one["control"]["high"], one["threshold"]
        same = 1.0 if one.get("ratio", claim.result["unit"] != "us") else 0.0
        apart += low > same or high < same
        # Beyond is the side on which equality does not lie, so a speedup of 1 is not beyond 1.5.
        beyond += low > threshold if threshold > same else high < threshold
    compared = words.counted(len(judged), "comparisons")
    return (f"In {compared} the baseline was also compared with itself (A/A): {apart} of the "
            f"intervals exclude equality, {beyond} lie beyond the threshold.")


def notes(claim: Claim) -> list[str]:
    """What the comparisons of the baseline with itself found, and each note of the attacks once,
    with its number: every seed and process makes its own."""
    found = Counter(claim.notes)
    return [*filter(None, [sentence(claim)]),
            *(text if count == 1 else f"{text} ({count} times)" for text, count in found.items())]
