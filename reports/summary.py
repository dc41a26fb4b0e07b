"""The top of a report, which is read in seconds: the verdict in a sentence, its numbers, what needs
a look, and what changed since the baseline."""

from collections.abc import Iterable
from html import escape

from . import change, words
from .drawing import spark
from .evidence import Claim, Evidence
from .history import History

ORDER = ("falsified", "inconclusive", "survived", "not_tested")
CHANGES = ("WORSE", "cannot tell", "better", "new", "same")
NAMED_MAX = 6


def listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:NAMED_MAX]) + (", …" if len(found) > NAMED_MAX else "")


def having(evidence: Evidence, verdict: str) -> list[str]:
    return [claim.id for claim in evidence.claims if claim.result["verdict"] == verdict]


def sentence(evidence: Evidence) -> str:
    """The verdict of a run, worst first."""
    count = len(evidence.claims)
    fallen, open_, untested = (having(evidence, verdict) for verdict in
                               ("falsified", "inconclusive", "not_tested"))
    claims = words.counted(count, "claims")
    if fallen:
        return f"{len(fallen)} of {claims} falsified: {listed(fallen)}"
    if open_:
        return f"No claim falsified, {len(open_)} of {count} inconclusive: {listed(open_)}"
    if len(untested) == count:
        return f"None of {claims} tested"
    if untested:
        return (f"{count - len(untested)} of {claims} survived, {len(untested)} not tested: "
                f"{listed(untested)}")
    return f"All {claims} survived" if count > 1 else "The claim survived"


def saboteurs(evidence: Evidence) -> tuple[int, int]:
    """How many faults were detected, and of how many."""
    found = [claim.result["severity"] for claim in evidence.claims if claim.result["severity"]]
    return sum(one["caught"] for one in found), sum(one["of"] for one in found)


def changes(evidence: Evidence, history: History) -> dict[str, tuple[str, str]]:
    """For each claim a word and a reason; none without a baseline."""
    if history.baseline is None:
        return {}
    return {claim.id: change.of_claim(history.baseline.claim(claim.id), claim)
            for claim in evidence.claims}


def against(evidence: Evidence, history: History) -> str:
    """What changed since the baseline, in a sentence; "" without one."""
    if history.baseline is None:
        return ""
    found = changes(evidence, history)
    parts = []
    for kind in CHANGES:
        names = [name for name, (word, _) in found.items() if word == kind]
        if names:
            parts.append(f"{len(names)} {kind}" + (f" ({listed(names)})" if kind != "same" else ""))
    return (f"Since the baseline, {words.commit(history.baseline)}, "
            f"{words.when(history.baseline) or 'of unknown time'}: "
            f"{', '.join(parts) or 'nothing that both runs tested'}.")


def trend(claim: Claim, history: History) -> str:
    """The word for the change and the effects of all runs, as HTML."""
    assert history.baseline is not None
    word = change.of_claim(history.baseline.claim(claim.id), claim)[0]
    results = history.results(claim.id)
    if claim.result["effect"] is not None:
        results = [*results, claim.result]
    drawn = spark.draw(results, change.tolerance_of(claim.id) or 0.0)
    kind = "worse" if word == "WORSE" else "changed"
    return f'<span class="{kind}">{escape(word)}</span>{drawn}'


def tile(kind: str, number: str, label: str) -> str:
    return f'<li class="{kind}"><b>{number}</b> {escape(label)}</li>'


def tiles(evidence: Evidence, history: History) -> str:
    found = [tile(verdict if evidence.count(verdict) else "none", str(evidence.count(verdict)),
                  f"{words.SIGNS[verdict]} {verdict.replace('_', ' ')}") for verdict in ORDER]
    caught, of = saboteurs(evidence)
    if of:
        found.append(tile("survived" if caught == of else "falsified", f"{caught} of {of}",
                          words.unit_of(of, "saboteurs") + " detected"))
    if history.baseline is not None:
        worse = [word for word, _ in changes(evidence, history).values()].count("WORSE")
        found.append(tile("falsified" if worse else "none", str(worse), "worse than the baseline"))
    return f'<ul class="tiles">{"".join(found)}</ul>'


def attention(evidence: Evidence, history: History, mark: str) -> str:
    """A line for each claim that is falsified, inconclusive or worse, or whose attacks are
    blind to a saboteur."""
    moved, lines = changes(evidence, history), []
    for claim in evidence.claims:
        said = []
        if claim.result["verdict"] in ("falsified", "inconclusive"):
            said.append(f"{words.verdict(claim)}: {claim.result['reason'] or 'no reason given'}")
        elif moved.get(claim.id, ("", ""))[0] == "WORSE":
            said.append(f"worse than the baseline, {moved[claim.id][1]}")
        blind = [one.name for one in claim.saboteurs if one.right is False]
        if blind:
            said.append(f"not as expected under {listed(blind)}")
        if said:
            lines.append(f'<li><a href="#{mark}{claim.id}"><b>{claim.id}</b></a> '
                         f"{escape('; '.join(said)[:400])}</li>")
    return f'<ul class="attention">{"".join(lines)}</ul>' if lines else ""


def render(evidence: Evidence, history: History, mark: str) -> str:
    compared = against(evidence, history)
    return (tiles(evidence, history) + attention(evidence, history, mark)
            + (f"<p>{escape(compared)}</p>" if compared else ""))
