"""Many mutants in one object, each behind its number (mutant schemata, Untch and others, 1993).

A function with mutants has its body once for each of them, and once as it is:

    int f(int a) { if (number == 7) { the body with mutant 7 } else { the body } }

The environment says which mutant a process is: TOLLENS_MUTANT=7. With TOLLENS_MUTANT_SEEN=FILE, a
file of SEEN_BYTES, the body as it is sets byte 7 of the file to 1 where control reaches the
statement that mutant 7 changes: so one run of a test says which mutants it could notice, and also
does if the process ends by _exit or is killed.
"""

import dataclasses

from mutation.lexer import KEYWORDS, Source
from mutation.operators import Mutant

SEEN_BYTES = 1 << 18
# Without a header: a source may define what changes headers. By names that no source gives to a
# function of its own. Each object reads the number itself, before other constructors run.
HEAD = f"""\
extern char *tol_mutant_environment(const char *) __asm__("getenv");
extern int tol_mutant_open(const char *, int, ...) __asm__("__open");
extern int tol_mutant_close(int) __asm__("__close");
extern void *tol_mutant_map(void *, unsigned long, int, int, int, long) __asm__("mmap64");
static int tol_mutant_number;
static volatile unsigned char *tol_mutant_seen;
#define TOL_MUTANT_HERE(number) ((void)(tol_mutant_seen && (tol_mutant_seen[number] = 1)))
__attribute__((constructor(101))) static void tol_mutant_begin(void) {{
    const char *text = tol_mutant_environment("TOLLENS_MUTANT");
    for (; text && *text; text++) tol_mutant_number = 10 * tol_mutant_number + (*text - '0');
    const char *path = tol_mutant_environment("TOLLENS_MUTANT_SEEN");
    int file = path ? tol_mutant_open(path, 2) : -1;
    if (file < 0) return;
    void *place = tol_mutant_map(0, {SEEN_BYTES}, 3, 1, file, 0);
    if (place != (void *)-1) tol_mutant_seen = place;
    tol_mutant_close(file);
}}
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """Of a text, to be replaced."""
    begin: int
    end: int
    text: str


def schema(file: str, text: str, mutants: dict[int, Mutant]) -> str:
    """The text of a file with all these mutants, numbered from 1, behind their numbers."""
    source = Source(text)
    places = {token.begin: index for index, token in enumerate(source.tokens)}
    functions: dict[int, dict[int, Mutant]] = {}
    parts: list[Part] = []
    arguments: dict[tuple[int, int], dict[int, Mutant]] = {}
    for number, mutant in mutants.items():
        index = places[mutant.begin]
        if source.is_bare[index]:
            arguments.setdefault(_argument(source, index), {})[number] = mutant
        else:
            functions.setdefault(_body(source, index), {})[number] = mutant
    parts += [_choice(source, *place, inside) for place, inside in arguments.items()]
    parts += [_bodies(file, source, opening, inside) for opening, inside in functions.items()]
    for part in sorted(parts, key=lambda part: -part.begin):
        text = text[:part.begin] + part.text + text[part.end:]
    return f'{HEAD}#line 1 "{file}"\n{text}'


def _openings(source: Source, index: int) -> list[int]:
    """The brackets around a token, the innermost first."""
    return [place for place in range(index - 1, -1, -1)
            if source.tokens[place].text in ("(", "[", "{")
            and source.partner.get(place, -1) >= index]


def _body(source: Source, index: int) -> int:
    return _openings(source, index)[-1]


def _argument(source: Source, index: int) -> tuple[int, int]:
    """Begin and end, in the text, of the argument of a macro that stands alone."""
    opening = _openings(source, index)[-1]
    first = place = opening + 1
    while place < source.partner[opening]:
        if source.tokens[place].text == ",":
            if place > index:
                break
            first = place + 1
        place = source.partner.get(place, place) + 1
    return source.tokens[first].begin, source.tokens[place - 1].end


def _choice(source: Source, begin: int, end: int, mutants: dict[int, Mutant]) -> Part:
    whole = source.text[begin:end]
    text = f"({' , '.join(f'TOL_MUTANT_HERE({number})' for number in mutants)}, {whole})"
    for number, mutant in mutants.items():
        changed = (whole[:mutant.begin - begin] + mutant.text + whole[mutant.end - begin:])
        text = f"(tol_mutant_number == {number} ? ({changed}) : {text})"
    return Part(begin, end, text)


def _bodies(file: str, source: Source, opening: int, mutants: dict[int, Mutant]) -> Part:
    begin, end = source.tokens[opening].end, source.tokens[source.partner[opening]].begin
    body = source.text[begin:end]
    labels = sorted({source.tokens[index].text
                     for index in range(opening + 1, source.partner[opening] - 1)
                     if source.tokens[index].kind == "word"
                     and source.tokens[index].text not in KEYWORDS
                     and source.text_at(index + 1) == ":" and source.begins_statement(index)})
    head = f"__label__ {', '.join(labels)};" if labels else ""
    line = f'\n#line {source.line(begin)} "{file}"\n'
    text = ""
    for number, mutant in mutants.items():
        changed = mutant.apply(source.text)
        changed = changed[begin:end + len(changed) - len(source.text)]
        text += f"if (tol_mutant_number == {number}) {{{head}{line}{changed}\n}} else "
    marks = sorted(((_statement(source, opening, mutant), number)
                    for number, mutant in mutants.items()), reverse=True)
    for place, number in marks:
        body = f"{body[:place - begin]} TOL_MUTANT_HERE({number});{body[place - begin:]}"
    return Part(begin, end, f"{text}{{{head}{line}{body}\n}}"
                            f'\n#line {source.line(end)} "{file}"\n')


def _statement(source: Source, opening: int, mutant: Mutant) -> int:
    """Where, in the text, a statement can be put in front of the one that a mutant changes: in the
    innermost block in which that can be told without knowing the grammar, else where the body
    begins."""
    index = next(place for place in range(opening, len(source.tokens))
                 if source.tokens[place].begin == mutant.begin)
    for block in _openings(source, index):
        if block == opening:
            break
        if source.tokens[block].text == "{" and _is_block(source, block):
            found = _in_block(source, block, index)
            if found:
                return found
    return _in_block(source, opening, index) or source.tokens[opening].end


def _is_block(source: Source, opening: int) -> bool:
    """And no initialiser or literal."""
    before = source.text_at(opening - 1)
    if before != ")":
        return before in ("else", "do", ";", "}", ":")
    name = source.text_at(source.partner[opening - 1] - 1)
    return name in ("if", "while", "for", "switch")


def _in_block(source: Source, block: int, index: int) -> int:
    """The end of the statement before, or of the labels of this one; 0 if it is no statement."""
    first = place = block + 1
    while place < index:
        text = source.tokens[place].text
        if text in ("(", "[", "{"):
            other = source.partner[place]
            if other >= index:
                break
            # A body of if, while and so on ends a statement; an initialiser does not.
            if text == "{" and (place == first or _is_block(source, place)):
                first = other + 1
            place = other
        elif text == ";":
            first = place + 1
        elif text == ":" and source.text_at(first) in ("case", "default"):
            first = place + 1
        elif text == ":" and first == place - 1:
            first = place + 1
        place += 1
    if source.text_at(first) in ("else", "while", "case", "default") or first > index:
        return 0
    return source.tokens[first - 1].end
