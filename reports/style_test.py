"""Tests of colours and of what goes into a page: python3 -m unittest reports.style_test.

ci/browser.py has axe-core look at the text of pages; of figures it cannot judge the colours.
"""

import re
import unittest

from reports import style

THEMES = re.findall(r":root \{ ([^}]*--ink[^}]*)\}", style.FIGURE)
TEXTS = ("ink", "faint", "good", "bad", "open", "none")
LINES = ("c0", "c1", "c2", "c3", "c4", "c5")


def colours(theme: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]+);", theme))


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                        for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Colours(unittest.TestCase):
    def test_the_measure_is_that_of_wcag(self) -> None:
        self.assertAlmostEqual(contrast("#000", "#ffffff"), 21.0)
        self.assertAlmostEqual(contrast("#767676", "#fff"), 4.54, places=2)

    def test_text_and_lines_can_be_told_from_the_paper_light_and_dark(self) -> None:
        self.assertEqual(len(THEMES), 2)
        for theme in map(colours, THEMES):
            for paper in ("paper", "soft"):
                for name in TEXTS:
                    self.assertGreaterEqual(contrast(theme[name], theme[paper]), 4.5, (name, paper))
            for name in LINES:
                self.assertGreaterEqual(contrast(theme[name], theme["paper"]), 3.0, name)

    def test_what_is_printed_is_the_light_theme(self) -> None:
        self.assertIn("@media screen and (prefers-color-scheme: dark)", style.FIGURE)
        self.assertNotRegex(style.STYLE, r"@media \(prefers-color-scheme: dark\)")


class Packed(unittest.TestCase):
    def test_comments_stay_out_and_nothing_else(self) -> None:
        for text in (style.STYLE, style.SCRIPT):
            self.assertNotIn("/*", text)
            self.assertNotRegex(text, r"(?m)^\s*//")
            self.assertNotRegex(text, r"(?i)</s|<!--")  # would end the element that it is in
        self.assertEqual(style.STYLE.count("{"), style.STYLE.count("}"))
        self.assertTrue(style.SCRIPT.endswith("})();"))


if __name__ == "__main__":
    unittest.main()
