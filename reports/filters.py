"""The filters of a report: by verdict, claim and saboteur. They need no script: the style hides
what the form's state excludes. A browser whose style cannot do that shows no form."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from . import words
from .evidence import VERDICTS, Claim, Evidence, Saboteur

WRONG = "not-as-expected"


def token(name: str) -> str:
    """A name as an attribute's word and in a selector; evidence may have any name."""
    return re.sub(r"[^\w.=+-]", "_", name, flags=re.ASCII)


def of_claim(claim: Claim) -> str:
    """The attributes of what belongs to a claim."""
    found = [token(one.name) for one in claim.saboteurs]
    found += [WRONG] * any(one.right is False for one in claim.saboteurs)
    return (f' data-claim="{token(claim.id)}" data-verdict="{claim.result["verdict"]}"'
            f' data-saboteurs="{" ".join(found)}"')


def of_saboteur(saboteur: Saboteur) -> str:
    """The attributes of what belongs to a saboteur."""
    found = [token(saboteur.name), *[WRONG] * (saboteur.right is False)]
    return f' data-saboteur="{" ".join(found)}"'


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def choice(name: str, label: str, all_of_them: str, options: Sequence[tuple[str, str]]) -> str:
    texts = "".join(f'<option value="{token(value)}">{escape(text)}</option>'
                    for value, text in options)
    return (f'<label for="only-{name}">{label}</label> <select id="only-{name}">'
            f'<option value="">{all_of_them}</option>{texts}</select>')


def form(runs: Sequence[Evidence]) -> str:
    claims = [claim for run in runs for claim in run.claims]
    if len(claims) < 2:
        return ""
    titles = {claim.id: f"{claim.id} {claim.result['title']}" for claim in claims}
    faults = unique(one.name for claim in claims for one in claim.saboteurs)
    wrong = [(WRONG, "not as expected")] * any(one.right is False for claim in claims
                                               for one in claim.saboteurs)
    boxes = "".join(
        f'<label><input type="checkbox" id="show-{verdict}" checked> {words.SIGNS[verdict]} '
        f"{verdict.replace('_', ' ')}</label> " for verdict in VERDICTS
        if any(claim.result["verdict"] == verdict for claim in claims))
    parts = [f"<fieldset><legend>Show</legend>{boxes}</fieldset>",
             f"<span>{choice('claim', 'Claim', 'all', list(titles.items()))}</span>"]
    if faults:
        named = [*wrong, *((name, name) for name in faults)]
        parts.append(f"<span>{choice('saboteur', 'Saboteur', 'all', named)}</span>")
    return (f'<form class="filters" aria-label="Filters">{"".join(parts)}'
            f'<button type="reset">Show all</button></form>{style(titles, faults)}')


def counted(evidence: Evidence, table: str) -> str:
    """The table of verdicts, and above it how many of its rows are shown. The style counts them, so
    the number comes after the rows."""
    count = words.counted(len(evidence.claims), "claims")
    return f'<div class="counted">{table}<p class="shown note"> of {count} shown</p></div>'


def style(claims: Iterable[str], faults: Iterable[str]) -> str:
    """A rule for each state of the form."""
    rules = [f'body:has(#show-{verdict}:not(:checked)) [data-verdict="{verdict}"]'
             for verdict in VERDICTS]
    for name in map(token, claims):
        rules.append(f'body:has(#only-claim [value="{name}"]:checked) '
                     f'[data-claim]:not([data-claim="{name}"])')
    for name in (WRONG, *map(token, faults)):
        state = f'body:has(#only-saboteur [value="{name}"]:checked)'
        rules += [f'{state} [data-saboteurs]:not([data-saboteurs~="{name}"])',
                  f'{state} [data-saboteur]:not([data-saboteur~="{name}"])']
    return "<style>" + "".join(f"{rule}{{display:none}}" for rule in rules) + "</style>"
