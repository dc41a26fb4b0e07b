"""Tables of TOML, row by row: ValueError names a key that is missing or has a wrong value.
"""

from typing import Any


def rows_of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of that name."""
    rows = found.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{name} is not a list of tables, [[{name}]]")
    return rows


def check_keys(what: str, row: dict[str, Any], texts: tuple[str, ...], lists: tuple[str, ...] = (),
               optional: tuple[str, ...] = ()) -> None:
    """The keys that the row must have, and those that it may have: what each is."""
    for key in (*texts, *lists, *(key for key in optional if key in row)):
        if key not in row:
            raise ValueError(f"a {what} has no {key}: {row}")
        values = row[key] if key in lists and isinstance(row[key], list) else [row[key]]
        if not all(isinstance(value, str) for value in values) or (
                key in lists and not isinstance(row[key], list)):
            raise ValueError(f"a {what} has a {key} that is no "
                             f"{'list of texts' if key in lists else 'text'}: {row}")
