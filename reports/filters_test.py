"""Tests of a report's filters: python3 -m unittest reports.filters_test. ci/browser.py uses them
in a browser."""

import pathlib
import re
import unittest
from html.parser import HTMLParser

from reports import filters, made_evidence
from reports.evidence import Claim, Evidence, Saboteur


def saboteur(name: str, right: bool | None = True) -> Saboteur:
    return Saboteur(name, "falsified", "falsified", right, "", 1, [], [])


def run_of(*claims: Claim) -> Evidence:
    return Evidence(pathlib.Path(), {}, {}, {}, list(claims))


def claim(name: str, verdict: str, *saboteurs: Saboteur) -> Claim:
    return Claim(made_evidence.result(name, verdict=verdict, title=f"<{name}>"), {}, [],
                 saboteurs=list(saboteurs))


class Form(HTMLParser):
    """The values of a form's controls, by their id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.controls: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("input", "select"):
            self.controls[str(found["id"])] = []
        elif tag == "option":
            list(self.controls.values())[-1].append(str(found["value"]))


class Filters(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = run_of(claim("H1", "survived", saboteur("drop"), saboteur("late_us=1.5")),
                           claim("H2", "falsified", saboteur("drop", False)))

    def test_the_form_names_what_the_run_has(self) -> None:
        controls = Form(filters.form([self.run_])).controls
        self.assertEqual(controls, {
            "show-survived": [], "show-falsified": [], "only-claim": ["", "H1", "H2"],
            "only-saboteur": ["", filters.WRONG, "drop", "late_us=1.5"]})
        self.assertEqual(filters.form([run_of(self.run_.claims[0])]), "", "one claim needs none")

    def test_every_state_of_the_form_has_a_rule(self) -> None:
        text = filters.form([self.run_])
        rules = text.split("<style>")[1]
        for name, values in Form(text).controls.items():
            for value in filter(None, values):
                self.assertIn(f'body:has(#{name} [value="{value}"]:checked)', rules)
            if not values:
                self.assertIn(f"body:has(#{name}:not(:checked))", rules)

    def test_parts_of_the_page_say_whose_they_are(self) -> None:
        one, other = self.run_.claims
        self.assertEqual(filters.of_claim(one), ' data-claim="H1" data-verdict="survived"'
                                                ' data-saboteurs="drop late_us=1.5"')
        self.assertIn(f'data-saboteurs="drop {filters.WRONG}"', filters.of_claim(other))
        self.assertEqual(filters.of_saboteur(one.saboteurs[0]), ' data-saboteur="drop"')
        self.assertIn(filters.WRONG, filters.of_saboteur(other.saboteurs[0]))

    def test_a_name_can_break_neither_page_nor_style(self) -> None:
        bad = '"]{}</style><b>\n x'
        page = filters.form([run_of(claim("H1", "survived", saboteur(bad)),
                                    claim("H2", "survived"))])
        self.assertEqual((page.count("<style>"), page.count("</style>"), page.count("<b>")),
                         (1, 1, 0))
        self.assertRegex(filters.token(bad), r"^[\w.=+-]+$")
        self.assertEqual(len(re.findall(r"<option", page)), 5)


if __name__ == "__main__":
    unittest.main()
