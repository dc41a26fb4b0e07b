"""Checks data against a JSON Schema, with the keywords that this repository's schemas use.

    python3 -m reports.schema SCHEMA FILE    exit code 1 if the file does not match

An unknown keyword in the schema is an error, so a new keyword is never silently ignored. If
Python's jsonschema is installed, schema_test.py compares the results of both.
"""

import functools
import json
import pathlib
import re
import sys
from typing import Any

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "hypotheses/results.schema.json"
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int,), "number": (int, float), "null": (type(None),)}
KNOWN = {"$schema", "title", "description", "type", "required", "properties", "items", "maxItems",
         "enum", "const", "minimum", "pattern"}


def is_of(data: Any, name: str) -> bool:
    if isinstance(data, bool):
        return name == "boolean"
    return isinstance(data, TYPES[name])


def faults(data: Any, schema: dict[str, Any], where: str = "results.json") -> list[str]:
    """What is wrong with the data, a sentence each."""
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: unknown keywords of the schema: {', '.join(sorted(unknown))}")
    found: list[str] = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of(data, name) for name in types):
        return [f"{where} must be {' or '.join(types)}: {data!r}"]
    if "const" in schema and (data != schema["const"] or isinstance(data, bool)):
        found.append(f"{where} must be {schema['const']!r}: {data!r}")
    if "enum" in schema and data not in schema["enum"]:
        found.append(f"{where} must be one of {schema['enum']}: {data!r}")
    if "minimum" in schema and is_of(data, "number") and not data >= schema["minimum"]:
        found.append(f"{where} is below {schema['minimum']}: {data!r}")
    if "pattern" in schema and isinstance(data, str) and not re.search(schema["pattern"], data):
        found.append(f"{where} does not match {schema['pattern']}: {data!r}")
    if isinstance(data, dict):
        found += [f"{where} has no {name}" for name in schema.get("required", [])
                  if name not in data]
        for name, inner in schema.get("properties", {}).items():
            if name in data:
                found += faults(data[name], inner, f"{where}: {name}")
    if isinstance(data, list):
        if len(data) > schema.get("maxItems", len(data)):
            found.append(f"{where} has more than {schema['maxItems']} entries")
        for index, one in enumerate(data):
            found += faults(one, schema.get("items", {}), f"{where}[{index}]")
    return found


@functools.cache
def of_results() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text(encoding="utf-8")))


def check_results(data: Any) -> list[str]:
    return faults(data, of_results())


def main(words: list[str]) -> int:
    if len(words) != 2:
        print("usage: python3 -m reports.schema SCHEMA FILE", file=sys.stderr)
        return 2
    try:
        schema, data = (json.loads(pathlib.Path(word).read_text(encoding="utf-8"))
                        for word in words)
    except (OSError, ValueError) as error:
        print(f"schema: {error}", file=sys.stderr)
        return 2
    found = faults(data, schema, pathlib.Path(words[1]).name)
    print("\n".join(found[:20]) if found else "schema: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
