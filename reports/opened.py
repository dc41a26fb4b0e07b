"""Opens a page in the reader's browser."""

import argparse
import pathlib
import sys
import webbrowser


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def open_page(path: pathlib.Path) -> None:
    """$BROWSER names another browser than the system's. Without any, a sentence says so: the page
    is written, and the exit code stays that of the report."""
    if not webbrowser.open(path.resolve().as_uri()):
        print(f"reports: no browser could be started; open {path} yourself, or name one in BROWSER",
              file=sys.stderr)
