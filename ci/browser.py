#!/usr/bin/env python3
"""Opens pages in headless Chromium: no console message, nothing wider than the window.

    ci/browser.py PAGE... [--out FOLDER]     at 390 and 1440 px; screenshots go to the folder

First a page that is broken on purpose must be complained of, or the check would be blind. Exit
code: 0 all pages are fine, 1 one is not, 2 no browser could be run. CHROMIUM may name the program.
"""

import argparse
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (390, 1440)
WINDOW, HEIGHT = 1500, 2400
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROBE = """<script>
for (const folded of document.querySelectorAll("details")) folded.open = true;
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
parent.postMessage(JSON.stringify({inner: inner, out: out.slice(0, 8),
  wide: document.documentElement.scrollWidth, figures: document.querySelectorAll("svg").length,
  words: document.body.innerText.length}), "*");
</script>"""
# A window is at least 500 px wide, a frame in it as narrow as one likes.
FRAME = """<!doctype html><html><body style="margin: 0"><script>
addEventListener("message", reply => document.documentElement.dataset.found = reply.data);
</script><iframe src="%s" width="%d" height="%d" style="border: 0; display: block"></iframe>
</body></html>"""
BROKEN = """<!doctype html><html><body><div style="width: 3000px">wide</div>
<script>absentFunction();</script></body></html>"""


def browser() -> str:
    for name in (os.environ.get("CHROMIUM", ""), *NAMES):
        if name and shutil.which(name):
            return name
    raise OSError("there is no Chromium: ci/setup browser installs it, or CHROMIUM may name one")


def run(program: str, folder: str, words: list[str]) -> "tuple[str, str]":
    """What a run printed, and its log."""
    command = [program, "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
               "--disable-dev-shm-usage", "--enable-logging=stderr", "--log-level=0",
               f"--user-data-dir={folder}/profile", f"--window-size={WINDOW},{HEIGHT}", *words]
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")  # which root may not have
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                          errors="replace")
    if done.returncode != 0:
        raise OSError(f"{program} ended with {done.returncode}: {done.stderr[-300:].strip()}")
    return done.stdout, done.stderr


def faults(program: str, page: pathlib.Path, width: int,
           picture: "pathlib.Path | None" = None) -> list[str]:
    """What is wrong with a page at a width. What was seen goes to the picture."""
    text = page.read_text(encoding="utf-8")
    # Beside the page, whose style may be a file there.
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(
            "w", dir=page.resolve().parent, suffix=".html", encoding="utf-8") as copy:
        copy.write(text.replace("</body>", PROBE + "</body>"))
        copy.flush()
        frame = pathlib.Path(folder, "frame.html")
        frame.write_text(FRAME % (pathlib.Path(copy.name).as_uri(), width, HEIGHT),
                         encoding="utf-8")
        out, log = run(program, folder, ["--dump-dom", f"file://{frame}"])
        if picture is not None:
            frame.write_text(FRAME % (page.resolve().as_uri(), width, HEIGHT), encoding="utf-8")
            run(program, folder, [f"--screenshot={picture.resolve()}", f"file://{frame}"])
    found = re.search(r'data-found="([^"]*)"', out)
    if found is None:
        return ["it was not shown"]
    reply = json.loads(html.unescape(found.group(1)))
    wrong = [line.split("CONSOLE", 1)[1].split("] ", 1)[-1].strip()
             for line in log.splitlines() if ":CONSOLE" in line]
    if reply["inner"] != width:
        wrong.append(f"the window is {reply['inner']} px wide, and not {width}")
    if reply["wide"] > reply["inner"]:
        wrong.append(f"it is {reply['wide']} px wide")
    return wrong + [f"{name} lies outside" for name in reply["out"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--find", action="store_true", help="only tells which browser there is")
    parser.add_argument("--out", type=pathlib.Path, help="where screenshots go; default: nowhere")
    arguments = parser.parse_args()
    bad = 0
    try:
        program = browser()
        if arguments.find:
            print(program)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder, "broken.html")
            broken.write_text(BROKEN)
            seen = " ".join(faults(program, broken, WIDTHS[1]))
        if "absentFunction" not in seen or "3008 px wide" not in seen:
            print(f"browser: a broken page was not seen to be broken, only: {seen}")
            return 1
        for page in arguments.pages:
            for width in WIDTHS:
                picture = None
                if arguments.out is not None:
                    arguments.out.mkdir(parents=True, exist_ok=True)
                    picture = arguments.out / f"{page.parent.name}-{width}.png"
                found = faults(program, page, width, picture)
                for text in found:
                    print(f"browser: {page} at {width} px: {text}")
                bad += len(found)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"browser: {error}", file=sys.stderr)
        return 2
    if not bad:
        print(f"summary: {len(arguments.pages)} pages at "
              f"{' and '.join(map(str, WIDTHS))} px in {program}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
