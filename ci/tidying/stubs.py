"""Finds what only seems to be there: functions that take something and do nothing with it.

A function in C with parameters that uses none of them, and does nothing or returns a constant; one
in Python whose body is pass, an ellipsis or NotImplementedError. ci/tidy.py asks; what stands in
ALLOWED is right as it is, and says why. What does its work wrongly, no program can tell: that is
what the claims and the tests are for.
"""

import ast
import re

ALLOWED = {
    "read_nothing": "the row of a table, whose value has been read before the others",
    "tol_numa_prefer": "no system but Linux has the call; the header says that it asks for nothing",
    "tol_numa_restore": "likewise",
    "__cudaRegisterFatBinaryEnd": "nvcc's code says that all is registered; nothing waits for it",
    "set_tool_version": "NVTX has tools call it, and nothing here depends on their version",
}

# A definition begins in the first column, and so does its closing brace.
FUNCTION = re.compile(r"^[A-Za-z_][^;{}=#]*?\b(\w+),?\s*\(([^(){};]*)\)+\s*\{\n"
                      r"((?:.*\n)*?)\}", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
CONSTANT = r"(?:-?\w+|\"[^\"]*\"|\(struct \w+\)\{0?\})"
NOTHING = re.compile(rf"\s*(?:\(void\)\s*\w+;\s*)*(?:return(?:\s+{CONSTANT})?;\s*)?")


def in_c(text: str) -> list[tuple[int, str]]:
    """Line and name of each. A macro that makes a function, EXPORT(name, (...)), goes by the name
    that it is given."""
    found = []
    for match in FUNCTION.finditer(text):
        name, parameters, body = match.groups()
        macro = re.match(r"\s*EXPORT\((\w+),", match.group())
        name = macro.group(1) if macro else name
        code = COMMENT.sub("", body)
        taken = set(re.findall(r"\b(\w+)\b\s*(?:\[\w*\])?\s*(?:,|$)", parameters.strip(") \n")))
        used = any(re.search(rf"\breturn\b.*\b{word}\b", code) for word in taken)
        if taken - {"void"} and not used and NOTHING.fullmatch(code) and name not in ALLOWED:
            found.append((text.count("\n", 0, match.start()) + 1, name))
    return found


def does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.dump(statement)
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def in_python(text: str) -> list[tuple[int, str]]:
    return [(node.lineno, node.name) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and all(map(does_nothing, node.body)) and node.name not in ALLOWED]
