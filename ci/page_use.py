"""Uses a page of a report as people do, for ci/browser.py --use: filters, the keyboard, zoom,
without scripts, printed from a dark screen."""

import re
from collections.abc import Callable, Iterator

try:
    from playwright.sync_api import Browser, Page
except ModuleNotFoundError:  # --help is for everybody
    Browser, Page = object, object

FIGURES = 15  # of all kinds are enlarged
OPEN = "for (const one of document.querySelectorAll('details')) one.open = true"
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


def faults(browser: Browser, address: str) -> Iterator[str]:
    for check in (filtered, walked, zoomed, plain):
        yield from check(browser, address)


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
