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
import shutil
import sys
import tempfile
from collections.abc import Iterator

import page_use

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Error, Page, sync_playwright
except ModuleNotFoundError:  # --help is for everybody
    sync_playwright, Error, Browser, Page = None, OSError, object, object

WIDTHS = (390, 1440)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
         "resultTypes": ["violations"]}
DARK = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}
BROKEN = """<!doctype html><html lang="en"><head><title>t</title></head><body>
<p style="color: #999; background: #fff">pale</p><img src="data:,">
<div style="width: 3000px">wide</div><script>absentFunction();</script></body></html>"""
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
        page.evaluate(page_use.OPEN)
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
            page.evaluate(page_use.OPEN)
            yield from (f"{width} px, {scheme}: {text}" for text in forbidden(
                page, RULES if scheme == "light" else DARK))
            context.close()


def used(browser: Browser, address: str, picture: pathlib.Path | None) -> Iterator[str]:
    yield from accessible(browser, address, picture)
    yield from page_use.faults(browser, address)


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
