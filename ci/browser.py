#!/usr/bin/env python3
"""Opens pages in headless Chromium, by Playwright: no console message, nothing wider than the
window. With --use, as people use reports: by keyboard, with filters and zoom, with and without
scripts, light, dark and printed; axe-core looks for what WCAG 2.2 AA forbids.

    build/browser/bin/python3 ci/browser.py [--use] PAGE... [--out FOLDER]
    ci/browser.py --find         says which Chromium there is

Screenshots at 390 and 1440 px go to FOLDER. First a page that is broken on purpose must be
complained of, or the check would be blind. ci/setup browser installs what this needs; CHROMIUM may
name the program.

Exit code: 0 all pages are fine, 1 one is not, 2 no browser could be run.
"""

import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Error, Page, sync_playwright
except ModuleNotFoundError:  # --help is for everybody
    sync_playwright, Error, Browser, Page = None, OSError, object, object

WIDTHS = (390, 1440)
FIGURES = 15  # how many are enlarged, of all kinds
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
         "resultTypes": ["violations"]}
DARK = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}
BROKEN = """<!doctype html><html lang="en"><head><title>t</title></head><body>
<p style="color: #999; background: #fff">pale</p><img src="data:,">
<div style="width: 3000px">wide</div><script>absentFunction();</script></body></html>"""
OPEN = "for (const one of document.querySelectorAll('details')) one.open = true"
WIDE = """() => {
const out = [], inner = window.innerWidth;
const scrolls = e => { for (; e && e !== document.body; e = e.parentElement)
  if (getComputedStyle(e).overflowX === "auto") return true; return false; };
for (const e of document.body.querySelectorAll("*")) {
  if (e.closest("svg") && e.tagName !== "svg") continue;
  if (e.closest(".md-sidebar")) continue; // the drawer of the documentation, beside a window
  const box = e.getBoundingClientRect();
  if (box.width > 0 && (box.right > inner + 1 || box.left < -1) && !scrolls(e.parentElement))
    out.push(e.tagName + "." + (e.getAttribute("class") || "") + " " + Math.round(box.left) + " to "
      + Math.round(box.right));
}
return [document.documentElement.scrollWidth, out.slice(0, 8)]; }"""
SHOWN = """() => [...document.querySelectorAll("section[data-claim]")]
  .filter(one => one.checkVisibility()).map(one => one.dataset.claim)"""
CLAIMS = """() => [...document.querySelectorAll("section[data-claim]")]
  .map(one => ({claim: one.dataset.claim, verdict: one.dataset.verdict,
    saboteurs: one.dataset.saboteurs}))"""
# Each tick of a zoomed figure lies where the data of its value is.
TICKS_ASTRAY = """() => [...document.querySelectorAll("dialog .panel")].flatMap(panel => {
  const [left, top, right, base] = panel.dataset.box.split(" ").map(Number);
  const shift = panel.querySelector(".data").transform.baseVal.consolidate().matrix;
  return ["x", "y"].flatMap(name => {
    const [low, high, kind] = panel.dataset[name].split(" ");
    if (kind === "fixed") return [];
    const scale = kind === "log" ? Math.log10 : value => value;
    const ends = [scale(Number(low)), scale(Number(high))];
    return [...panel.querySelectorAll(`.t${name}`)].filter(one => one.style.display !== "none")
      .map(label => {
        const number = parseFloat(label.textContent);
        const value = kind === "nines" ? -Math.log10(1 - number / 100) : scale(number);
        const share = (value - ends[0]) / (ends[1] - ends[0]);
        const place = name === "x" ? shift.a * (left + share * (right - left)) + shift.e
          : shift.d * (base - share * (base - top)) + shift.f;
        const at = Number(label.getAttribute(name)) - (name === "y" ? 2.5 : 0);
        return Math.abs(place - at) < 3 ? "" : `${label.textContent} at ${at}, not ${place}`;
      }).filter(Boolean);
  });
})"""
STATE = """() => ({matrix: document.querySelector("dialog .data")?.getAttribute("transform"),
  ticks: document.querySelectorAll("dialog .tx, dialog .ty").length,
  open: document.querySelector("dialog").open,
  focus: document.activeElement.getAttribute("aria-label") || ""})"""


def program() -> str:
    found = next((name for name in (os.environ.get("CHROMIUM", ""), *NAMES)
                  if name and shutil.which(name)), "")
    if not found:
        raise OSError("there is no Chromium: ci/setup browser installs it, or CHROMIUM names one")
    return str(shutil.which(found))


def opened(browser: Browser, address: str, picture: pathlib.Path | None) -> Iterator[str]:
    """What is wrong with a page as it opens, at each width."""
    for width in WIDTHS:
        wrong: list[str] = []
        page = browser.new_page(viewport={"width": width, "height": 2400})
        page.on("console", lambda message, wrong=wrong: wrong.append(message.text))
        page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        page.goto(address)
        if picture is not None:
            page.screenshot(path=picture.with_name(f"{picture.name}-{width}.png"))
        page.evaluate(OPEN)
        wide, outside = page.evaluate(WIDE)
        wrong += [f"it is {wide} px wide"] if wide > width else []
        yield from (f"at {width} px: {text}" for text in wrong)
        yield from (f"at {width} px: {name} lies outside" for name in outside)
        page.close()


def forbidden(page: Page, rules: dict[str, object]) -> Iterator[str]:
    """What axe-core finds. Of a figure it sees the whole, and not its thousands of points."""
    whole = {"include": [["html"]], "exclude": [[".figure svg g"]]}
    for found in Axe().run(page, context=whole, options=rules).response["violations"]:
        first = found["nodes"][0]
        yield (f"{found['id']}: {found['help']}, {len(found['nodes'])} times, first "
               f"{' '.join(map(str, first['target']))}: {first['html'][:120]}")


def accessible(browser: Browser, address: str, picture: pathlib.Path | None) -> Iterator[str]:
    for width, height in ((390, 844), (1440, 1000)):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": height},
                                          color_scheme=scheme)  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(address)
            if picture is not None:
                page.screenshot(path=picture.with_name(f"{picture.name}-{width}-{scheme}.png"))
            page.evaluate(OPEN)
            yield from (f"{width} px, {scheme}: {text}" for text in forbidden(
                page, RULES if scheme == "light" else DARK))
            context.close()


def filtered(browser: Browser, address: str) -> Iterator[str]:
    """Each state of the form, without a script; what it shows follows from the attributes."""
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(address)
    if page.query_selector("form.filters") is None:
        return
    claims = page.evaluate(CLAIMS)
    for box in page.query_selector_all("form.filters input"):
        name = str(box.get_attribute("id"))
        verdict = name.removeprefix("show-")
        page.uncheck(f"#{name}")
        yield from wrong_claims(page, claims, verdict, lambda claim, verdict=verdict:
                                claim["verdict"] != verdict)
        page.click("form.filters button")
    for key, attribute in (("claim", "claim"), ("saboteur", "saboteurs")):
        for option in page.query_selector_all(f"#only-{key} option")[1:]:
            value = str(option.get_attribute("value"))
            page.select_option(f"#only-{key}", value)
            yield from wrong_claims(page, claims, value, lambda claim, attribute=attribute,
                                    value=value: value in claim[attribute].split())
        page.click("form.filters button")
    yield from wrong_claims(page, claims, "no filter", lambda _: True)
    page.context.close()


def wrong_claims(page: Page, claims: list[dict[str, str]], state: str,
                 fits: "Callable[[dict[str, str]], bool]") -> Iterator[str]:
    expected = {claim["claim"] for claim in claims if fits(claim)}
    found = set(page.evaluate(SHOWN))
    if found != expected:
        yield f"the filter {state} shows {sorted(found)}, expected {sorted(expected)}"


def zoomed(browser: Browser, address: str) -> Iterator[str]:
    """A figure is enlarged and zoomed by keys alone."""
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"the script failed: {error}"))
    page.goto(address)
    page.evaluate(OPEN)
    buttons = page.query_selector_all(".figure > button")
    for button in buttons[::max(1, len(buttons) // FIGURES)]:
        label = str(button.get_attribute("aria-label"))
        button.focus()
        page.keyboard.press("Enter")
        begin = page.evaluate(STATE)
        steps = [(key, page.keyboard.press(key), page.evaluate(STATE)["matrix"])
                 for key in ("+", "+", "+", "ArrowLeft", "ArrowUp", "-")]
        if not begin["open"]:
            yield f"{label}: Enter does not enlarge it"
        if len({matrix for *_, matrix in steps}) != len(steps):
            yield f"{label}: a key did not change the view: {steps}"
        yield from (f"{label}: {text}" for text in page.evaluate(TICKS_ASTRAY))
        page.keyboard.press("0")
        if page.evaluate(STATE)["matrix"] != begin["matrix"]:
            yield f"{label}: 0 does not show the whole figure"
        page.keyboard.press("Escape")
        end = page.evaluate(STATE)
        if end["open"] or end["focus"] != label:
            yield f"{label}: Esc leaves the focus on {end['focus']!r}"
    yield from wrong
    page.context.close()


def walked(browser: Browser, address: str) -> Iterator[str]:
    """The Tab key reaches every control, and the focus is seen."""
    page = browser.new_page()
    page.goto(address)
    wanted = page.evaluate("""() => [...document.querySelectorAll(
      "form.filters input, form.filters select, form.filters button, table.verdicts a, summary")]
      .filter(one => one.checkVisibility())
      .map((one, at) => one.dataset.walk = String(at)).length""")
    reached = set()
    for _ in range(3000):
        page.keyboard.press("Tab")
        now = page.evaluate("""() => { const one = document.activeElement;
          return [one.dataset.walk ?? "", getComputedStyle(one).outlineStyle, one.outerHTML, one
          === document.body]; }""")
        if now[3]:
            break
        if now[1] == "none":
            yield f"the focus is not seen on {now[2][:100]}"
        reached.add(now[0])
    missed = wanted - len(reached - {""})
    if missed:
        yield f"Tab does not reach {missed} of {wanted} controls"
    page.context.close()


def plain(browser: Browser, address: str) -> Iterator[str]:
    """The same without a script; printed from a dark screen it is dark on white."""
    texts = []
    for script in (True, False):
        page = browser.new_context(java_script_enabled=script).new_page()
        page.goto(address)
        texts.append((len(page.query_selector_all(".figure svg, svg.axis, svg.small")),
                      re.sub(r"\s+", "", page.inner_text("body").replace("⤢", ""))))
        if not script and page.query_selector(".figure button") is not None:
            yield "without a script there is a button that does nothing"
        page.context.close()
    if texts[0] != texts[1]:
        yield "without a script the page says something else"
    page = browser.new_context(color_scheme="dark").new_page()
    page.goto(address)
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.evaluate("getComputedStyle(document.body).color")
    if sum(map(int, re.findall(r"\d+", ink)[:3])) > 200:
        yield f"a dark page is printed in {ink}"
    page.context.close()


def used(browser: Browser, address: str, picture: pathlib.Path | None) -> Iterator[str]:
    yield from accessible(browser, address, picture)
    for check in (filtered, walked, zoomed, plain):
        yield from check(browser, address)


def all_faults(pages: list[pathlib.Path], out: pathlib.Path | None, use: bool) -> list[str]:
    """What is wrong with the pages."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program(), args=root)
        broken = pathlib.Path(folder, "broken.html")
        broken.write_text(BROKEN)
        seen = " ".join([*opened(browser, broken.as_uri(), None),
                         *(accessible(browser, broken.as_uri(), None) if use else ())])
        for sign in ("absentFunction", "3008 px wide",
                     *(("color-contrast", "image-alt") if use else ())):
            if sign not in seen:
                return [f"a broken page was not seen to be broken ({sign}), only: {seen}"]
        wrong = []
        for path in pages:
            if out is not None:
                out.mkdir(parents=True, exist_ok=True)
            picture = out / f"{path.parent.name}-{path.stem}" if out else None
            found = (used if use else opened)(browser, path.resolve().as_uri(), picture)
            wrong += [f"{path}: {text}" for text in found]
        browser.close()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--use", action="store_true", help="use the pages as people do")
    parser.add_argument("--find", action="store_true", help="only say which browser there is")
    parser.add_argument("--out", type=pathlib.Path, help="where screenshots go; default: nowhere")
    arguments = parser.parse_args()
    try:
        if arguments.find:
            print(program())
            return 0
        if sync_playwright is None:
            raise OSError("run it by build/browser/bin/python3, which ci/setup browser makes")
        wrong = all_faults(arguments.pages, arguments.out, arguments.use)
    except (OSError, Error) as error:
        print(f"browser: {error}", file=sys.stderr)
        return 2
    for text in wrong:
        print(f"browser: {text}")
    if not wrong:
        what = "axe-core, filters, keys, zoom, no script" if arguments.use else \
            f"{' and '.join(map(str, WIDTHS))} px"
        print(f"summary: {len(arguments.pages)} pages: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
