"""What ci/mutate --kernels changes: each mutant is one edit of a CUDA source.

The operators are those that Zhu and Zaidman propose for GPU programs ("Massively Parallel, Highly
Efficient, but What About the Test Suite Quality? Applying Mutation Testing to GPU Programs", ICST
2020), as far as there is something here for them to change:

| operator              | changes                                                                 |
|-----------------------|-------------------------------------------------------------------------|
| gpu_index_replacement | threadIdx and blockIdx into each other, blockDim and gridDim likewise   |
| gpu_index_increment   | a component of one of these into one more                               |
| gpu_index_decrement   | into one less                                                           |
| sync_removal          | deletes a call of __syncthreads or __syncwarp                           |
| share_removal         | a __shared__ array into one of each thread                              |
| atom_removal          | an atomic operation into a read and a write                             |

The other three change what a launch says between <<< and >>>. No source here has a launch: the
host's C has them, and ci/mutate changes that.
"""

import re
from collections.abc import Iterator

from mutation.lexer import Source
from mutation.operators import Edit, Mutant

OTHER = {"threadIdx": "blockIdx", "blockIdx": "threadIdx",
         "blockDim": "gridDim", "gridDim": "blockDim"}
SYNCHRONISES = {"__syncthreads", "__syncwarp"}
# What an atomic operation leaves, of what is there (old) and its arguments.
PLAIN = {"atomicAdd": "old + {0}", "atomicSub": "old - {0}", "atomicExch": "{0}",
         "atomicMax": "old > {0} ? old : {0}", "atomicMin": "old < {0} ? old : {0}",
         "atomicAnd": "old & {0}", "atomicOr": "old | {0}", "atomicXor": "old ^ {0}",
         "atomicCAS": "old == {0} ? {1} : old"}


def mutants(file: str, text: str) -> list[Mutant]:
    """All of a file, in the order of their places."""
    source = Source(text)
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    for operator, begin, end, new in sorted(_edits(source), key=lambda edit: edit[1:3]):
        lines = source.starts[source.line(begin) - 1], text.find("\n", end)
        before = " ".join(text[lines[0]:lines[1]].split())
        after = " ".join((text[lines[0]:begin] + new + text[end:lines[1]]).split())
        name = operator, before, after
        seen[name] = seen.get(name, -1) + 1
        found.append(Mutant(file, source.line(begin), operator, begin, end, new, before, after,
                            seen[name]))
    return found


def _edits(source: Source) -> Iterator[Edit]:
    for index, token in enumerate(source.tokens):
        if token.kind != "word":
            continue
        place = token.begin, token.end
        if token.text in OTHER and source.text_at(index + 1) == ".":
            yield "gpu_index_replacement", *place, OTHER[token.text]
            end = source.tokens[index + 2].end
            words = source.text[token.begin:end]
            yield "gpu_index_increment", token.begin, end, f"({words} + 1)"
            yield "gpu_index_decrement", token.begin, end, f"({words} - 1)"
        elif token.text in SYNCHRONISES and source.begins_statement(index):
            last = source.end_of_statement(index)
            yield "sync_removal", token.begin, source.tokens[last].end, ";"
        elif token.text == "__shared__" and source.text_at(index - 1) != "extern":
            yield "share_removal", *place, ""
        elif token.text in PLAIN and source.text_at(index + 1) == "(":
            yield from _atomic(source, index)


def _atomic(source: Source, index: int) -> Iterator[Edit]:
    close = source.partner[index + 1]
    arguments = list(_arguments(source, index + 2, close))
    if len(arguments) != 2 + (source.text_at(index) == "atomicCAS"):
        return
    values = [f"({argument})" for argument in arguments[1:]]
    new = PLAIN[source.text_at(index)].format(*values)
    yield "atom_removal", source.tokens[index].begin, source.tokens[close].end, (
        f"[&] {{ volatile auto *at = {arguments[0]}; auto old = *at; *at = {new}; return old; }}()")


def _arguments(source: Source, first: int, close: int) -> Iterator[str]:
    begin = index = first
    while index <= close:
        if index == close or source.text_at(index) == ",":
            text = source.text[source.tokens[begin].begin:source.tokens[index - 1].end]
            yield re.sub(r"\s+", " ", text)
            begin = index + 1
        opens = source.text_at(index) in ("(", "[", "{")
        index = source.partner[index] + 1 if opens else index + 1
