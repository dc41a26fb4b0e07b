"""C as ci/mutate reads it: the tokens of a file, and which of them are code that runs.

This is no parser. It knows comments, strings, the preprocessor's lines, brackets and where a
statement begins, which is what changing one token of a well-formatted file needs. Bodies of
functions are code, and so are calls of macros that stand alone in a file, such as the soft device's
OP2(add_32, u32, u32, u32, x + y). Types, tables and prototypes are not.
"""

import bisect
import dataclasses
import re
from collections.abc import Iterator

TOKEN = re.compile(r"""
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<string>[LuU]?"(?:\\.|[^"\\])*"|[LuU]?'(?:\\.|[^'\\])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|<<|>>|->|\+\+|--|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S | re.M)
CLOSES = {")": "(", "]": "[", "}": "{"}
KEYWORDS = {"if", "else", "while", "for", "do", "switch", "case", "default", "return", "break",
            "continue", "goto", "sizeof"}
TYPES = {"struct", "enum", "union", "static", "const", "unsigned", "signed", "int", "char", "long",
         "short", "float", "double", "void", "bool", "typedef", "extern", "register", "volatile",
         "_Static_assert", "_Alignas", "_Atomic", "_Thread_local", "static_assert"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # string, number, word or sign
    text: str
    begin: int
    end: int


class Source:
    """The tokens of a file. partner: the index of the bracket that belongs to a bracket. is_code:
    whether a token is inside a function, or in a macro that stands alone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [Token(str(match.lastgroup), match.group(), match.start(), match.end())
                       for match in TOKEN.finditer(text) if match.lastgroup != "skip"]
        self.starts = [0] + [match.end() for match in re.finditer("\n", text)]
        self.partner: dict[int, int] = {}
        self.inside: list[str] = []  # the innermost open bracket
        opened: list[int] = []
        for index, token in enumerate(self.tokens):
            self.inside.append(self.tokens[opened[-1]].text if opened else "")
            if token.kind == "sign" and token.text in "([{":
                opened.append(index)
            elif token.kind == "sign" and token.text in CLOSES and opened:
                other = opened.pop()
                self.partner[index] = other
                self.partner[other] = index
        self.is_code = [False] * len(self.tokens)
        self.is_bare = [False] * len(self.tokens)  # in a macro that stands alone
        self._find_code()

    def line(self, position: int) -> int:
        return bisect.bisect_right(self.starts, position)

    def text_at(self, index: int) -> str:
        """A token's text; nothing beyond the ends of the file."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def is_spaced(self, index: int) -> bool:
        """Whether a blank stands on both sides, as clang-format has it for binary operators."""
        token = self.tokens[index]
        return self.text[token.begin - 1].isspace() and self.text[token.end].isspace()

    def level(self, index: int, end: int | None = None) -> Iterator[int]:
        """From a token on, with what is between brackets left out, and its closing bracket."""
        while index < (len(self.tokens) if end is None else end):
            yield index
            index = max(index, self.partner.get(index, index)) + 1

    def _find_code(self) -> None:
        index = 0
        while index < len(self.tokens):
            token = self.tokens[index]
            end = self.partner.get(index, index)
            if token.text == "{":
                body = self.text_at(index - 1) == ")"
                for inner in range(index + 1, end) if body else ():
                    self.is_code[inner] = True
                index = end
            elif token.text == "(" and self._stands_alone(index, end):
                for inner in range(index + 1, end):
                    self.is_code[inner] = self.is_bare[inner] = True
                index = end
            elif token.text in ("(", "["):
                index = end
            index += 1

    def arguments(self, index: int, end: int) -> Iterator[str]:
        """Between two brackets, blanks squeezed."""
        first = index + 1
        for place in [*self.level(first, end), end]:
            if place == end or self.tokens[place].text == ",":
                text = self.text[self.tokens[first].begin:self.tokens[place - 1].end]
                yield " ".join(text.split())
                first = place + 1

    def _stands_alone(self, index: int, end: int) -> bool:
        """NAME(...) that begins a line and that neither a body nor a semicolon follows."""
        name = self.tokens[index - 1] if index else None
        return (name is not None and re.fullmatch(r"[A-Z][A-Z0-9_]*", name.text) is not None
                and (name.begin == 0 or self.text[name.begin - 1] == "\n")
                and self.text_at(end + 1) not in ("{", ";"))

    def begins_statement(self, index: int) -> bool:
        """Whether a statement can begin at a token."""
        before = self.text_at(index - 1)
        if self.inside[index] != "{":  # for (...; ...; ...)
            return False
        if before == ")":
            return self.text_at(self.partner.get(index - 1, 0) - 1) in ("if", "while", "for")
        if before == ":":  # a label's, not that of a ? :
            return self.text_at(index - 3) in (";", "}", "{", "case", ":") or (
                self.text_at(index - 2) == "default")
        return before in (";", "{", "}", "else", "do")

    def end_of_statement(self, index: int) -> int:
        """The index of its semicolon, or -1 where a block ends first."""
        end = next((at for at in self.level(index) if self.tokens[at].text in (";", "}")), -1)
        return end if self.text_at(end) == ";" else -1
