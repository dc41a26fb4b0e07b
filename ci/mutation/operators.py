"""What ci/mutate changes: each mutant is one edit of one source.

Of C:

| operator   | changes                                                                            |
|------------|------------------------------------------------------------------------------------|
| relational | < and <=, > and >=, == and !=                                                      |
| negated    | the condition of if, while, ?: and TOL_CHECK                                       |
| logical    | && and ||                                                                          |
| arithmetic | + and -, * and /, % into *, << and >>, & and |, ^ into |, also with =; ++ and --   |
| constant   | 0 and 1, false and true; any other whole number by one, up and down                |
| deleted    | a call, an assignment, break, continue, goto, a return on a condition              |
| status     | TOL_OK into a failure, a failure into the next; likewise CUDA_SUCCESS and the rest |

Left alone: asserts, which only watch; the sizes of arrays where they are declared; {0}; the
preprocessor's lines.

Of CUDA C, after Zhu and Zaidman ("Massively Parallel, Highly Efficient, but What About the Test
Suite Quality? Applying Mutation Testing to GPU Programs", ICST 2020):

| operator              | changes                                                                 |
|-----------------------|-------------------------------------------------------------------------|
| gpu_index_replacement | threadIdx and blockIdx into each other, blockDim and gridDim likewise   |
| gpu_index_increment   | a component of one of these into one more                               |
| gpu_index_decrement   | into one less                                                           |
| sync_removal          | deletes a call of __syncthreads or __syncwarp                           |
| share_removal         | a __shared__ array into one per thread                                  |
| atom_removal          | an atomic operation into a read and a write                             |

Their other three change what a launch says between <<< and >>>. No source here has a launch: the
host's C launches kernels.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator

from mutation.lexer import KEYWORDS, TYPES, Source

ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|",
              "|": "&", "^": "|"}
ARITHMETIC |= {f"{sign}=": f"{other}=" for sign, other in ARITHMETIC.items()}
# By the token: the operator, and what the token becomes.
TOKENS = {old: (operator, new) for operator, pairs in {
    "relational": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logical": {"&&": "||", "||": "&&"}, "arithmetic": {"++": "--", "--": "++"},
    "constant": {"false": "true", "true": "false"}}.items() for old, new in pairs.items()}
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
WATCHES = {"assert", "static_assert", "_Static_assert"}
# What precedes the condition of a ?:.
BEFORE_CONDITION = {"=", "(", "[", "{", ",", ";", "}", ":", "?", "return", *(
    sign for sign in ARITHMETIC if sign.endswith("=")), ""}
OTHER_INDEX = {"threadIdx": "blockIdx", "blockIdx": "threadIdx",
               "blockDim": "gridDim", "gridDim": "blockDim"}
# What an atomic operation stores, given the old value and its arguments.
PLAIN = {"atomicAdd": "old + {0}", "atomicSub": "old - {0}", "atomicExch": "{0}",
         "atomicMax": "old > {0} ? old : {0}", "atomicMin": "old < {0} ? old : {0}",
         "atomicAnd": "old & {0}", "atomicOr": "old | {0}", "atomicXor": "old ^ {0}",
         "atomicCAS": "old == {0} ? {1} : old"}
Edit = tuple[str, int, int, str]  # operator, begin, end, by what


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    operator: str
    begin: int  # what is replaced, as positions in the file's text
    end: int
    text: str  # by what
    before: str  # the lines, blanks squeezed, without the edit and with it
    after: str
    nth: int = 0  # of those with the same words in this file

    @property
    def key(self) -> str:
        """The same for the same edit where only lines above it changed."""
        return "\t".join([self.file, self.operator, self.before, self.after, str(self.nth)])

    def apply(self, text: str) -> str:
        """The file with the edit, and as many lines."""
        lost = text.count("\n", self.begin, self.end) - self.text.count("\n")
        return text[:self.begin] + self.text + "\n" * lost + text[self.end:]


def statuses(text: str) -> dict[str, str]:
    """From the text of status.def: what each status becomes."""
    names = [f"TOL_{name}" for name in re.findall(r"^TOL_STATUS\((\w+)", text, re.M)]
    return dict(zip(names, [*names[1:], *names[1:2]])) if len(names) > 1 else {}


def mutants(file: str, text: str, edits: Callable[[Source], Iterator[Edit]]) -> list[Mutant]:
    """All of a file, in the order of their places."""
    source = Source(text)
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    for operator, begin, end, new in sorted(edits(source), key=lambda edit: edit[1:3]):
        lines = source.starts[source.line(begin) - 1], text.find("\n", end)
        before = " ".join(text[lines[0]:lines[1]].split())
        after = " ".join((text[lines[0]:begin] + new + text[end:lines[1]]).split())
        name = operator, before, after
        seen[name] = seen.get(name, -1) + 1
        found.append(Mutant(file, source.line(begin), operator, begin, end, new, before, after,
                            seen[name]))
    return found


def c_edits(source: Source, status: dict[str, str]) -> Iterator[Edit]:
    """The edits of a file of C, given what each status becomes."""
    index = 0
    while index < len(source.tokens):
        if source.is_code[index] and source.text_at(index) in WATCHES and (
                source.text_at(index + 1) == "("):
            index = source.partner[index + 1]
        elif source.is_code[index]:
            token = source.tokens[index]
            for operator, new in _of_token(source, index, status):
                yield operator, token.begin, token.end, new
            yield from _conditions(source, index)
            yield from _statements(source, index)
        index += 1


def _of_token(source: Source, index: int, status: dict[str, str]) -> Iterator[tuple[str, str]]:
    kind, text = source.tokens[index].kind, source.text_at(index)
    if text in TOKENS and kind != "string":
        yield TOKENS[text]
    if kind == "number":
        yield from (("constant", new) for new in _numbers(source, index))
    elif kind == "sign" and text in ARITHMETIC and _is_binary(source, index):
        yield "arithmetic", ARITHMETIC[text]
    elif text in status:
        yield "status", status[text]
    elif re.fullmatch(r"CUDA_SUCCESS|CUDA_ERROR_[A-Z_]+", text):
        unknown = "CUDA_ERROR_UNKNOWN"
        yield "status", unknown if text != unknown else "CUDA_ERROR_INVALID_VALUE"


def _numbers(source: Source, index: int) -> list[str]:
    token = source.tokens[index]
    match = NUMBER.fullmatch(token.text)
    around = source.text_at(index - 1), source.text_at(index + 1)
    if match is None or around == ("{", "}"):
        return []
    if around == ("[", "]") and source.text_at(index + 2) in (";", "=", ","):
        name = source.tokens[index - 3]  # char text[64]; has a type before the name
        if name.kind == "word" and name.text not in KEYWORDS or name.text == "*":
            return []
    digits, suffix = match.groups()
    value = int(digits, 0 if digits[:2] in ("0x", "0X") else 10)
    form = "0x{:x}" if digits[:2] in ("0x", "0X") else "{}"
    others = [1 - value] if value in (0, 1) else [value - 1, value + 1]
    return [form.format(other) + suffix for other in others]


def _is_binary(source: Source, index: int) -> bool:
    token, before = source.tokens[index], source.tokens[index - 1]
    if token.text.endswith("="):
        return True
    operand = before.kind == "number" or before.text in (")", "]") or (
        before.kind == "word" and before.text not in KEYWORDS | TYPES)
    # In a macro's argument clang-format takes x * y for the declaration of a pointer.
    return operand and (source.is_spaced(index) or (
        source.is_bare[index] and token.text in "*&" and source.text_at(index + 1) not in ",)"))


def _conditions(source: Source, index: int) -> Iterator[Edit]:
    name = source.text_at(index)
    if name in ("if", "while", "TOL_CHECK") and source.text_at(index + 1) == "(":
        first, last = index + 2, source.partner[index + 1] - 1
        if name == "TOL_CHECK":
            last = next(at for at in source.level(first) if source.text_at(at) in (",", ")")) - 1
    elif name == "?":
        first, last = _begin_of_condition(source, index), index - 1
    else:
        return
    if last < first or _is_equality(source, first, last):  # that one is a relational mutant
        return
    begin, end = source.tokens[first].begin, source.tokens[last].end
    yield "negated", begin, end, f"!({source.text[begin:end]})"


def _begin_of_condition(source: Source, index: int) -> int:
    while source.text_at(index - 1) not in BEFORE_CONDITION:
        index = source.partner.get(index - 1, index - 1)
    return index


def _is_equality(source: Source, first: int, last: int) -> bool:
    texts = map(source.text_at, source.level(first, last + 1))
    return [text for text in texts if text in ("==", "!=", "&&", "||", "?")] in (["=="], ["!="])


def _statements(source: Source, index: int) -> Iterator[Edit]:
    if source.is_bare[index] or not source.begins_statement(index):
        return
    end = source.end_of_statement(index)
    words = [source.text_at(index), source.text_at(index + 1)]
    if end < 0 or words[0] in TYPES or words[0] in ("{", ";") or words[1] == ":":
        return
    if words[0] in KEYWORDS - {"break", "continue", "goto"}:
        conditional = words[0] == "return" and source.text_at(index - 1) == ")"
        if not conditional:
            return
    elif words == ["(", "void"] and source.tokens[end - 1].kind == "word":
        return  # (void)name; does nothing
    elif source.tokens[index].kind == "word" and words[0] not in KEYWORDS and (
            _is_declaration(source, index)):
        return
    yield "deleted", source.tokens[index].begin, source.tokens[end].end, ";"


def _is_declaration(source: Source, index: int) -> bool:
    """size_t count = 0; or CUdevice *device;"""
    following = source.tokens[index + 1]
    if following.text == "*":
        return not source.is_spaced(index + 1)
    return following.kind == "word"


def cuda_edits(source: Source) -> Iterator[Edit]:
    for index, token in enumerate(source.tokens):
        if token.kind != "word":
            continue
        place = token.begin, token.end
        if token.text in OTHER_INDEX and source.text_at(index + 1) == ".":
            yield "gpu_index_replacement", *place, OTHER_INDEX[token.text]
            end = source.tokens[index + 2].end
            words = source.text[token.begin:end]
            yield "gpu_index_increment", token.begin, end, f"({words} + 1)"
            yield "gpu_index_decrement", token.begin, end, f"({words} - 1)"
        elif token.text in ("__syncthreads", "__syncwarp") and source.begins_statement(index):
            last = source.end_of_statement(index)
            yield "sync_removal", token.begin, source.tokens[last].end, ";"
        elif token.text == "__shared__" and source.text_at(index - 1) != "extern":
            yield "share_removal", *place, ""
        elif token.text in PLAIN and source.text_at(index + 1) == "(":
            yield from _atomic(source, index)


def _atomic(source: Source, index: int) -> Iterator[Edit]:
    close = source.partner[index + 1]
    arguments = list(source.arguments(index + 1, close))
    if len(arguments) != 2 + (source.text_at(index) == "atomicCAS"):
        return
    values = [f"({argument})" for argument in arguments[1:]]
    new = PLAIN[source.text_at(index)].format(*values)
    yield "atom_removal", source.tokens[index].begin, source.tokens[close].end, (
        f"[&] {{ volatile auto *at = {arguments[0]}; auto old = *at; *at = {new}; return old; }}()")
