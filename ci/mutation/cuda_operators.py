"""What ci/mutate changes in CUDA sources, after Zhu and Zaidman ("Massively Parallel, Highly
Efficient, but What About the Test Suite Quality? Applying Mutation Testing to GPU Programs", ICST
2020):

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

from collections.abc import Iterator

from mutation.lexer import Source
from mutation.operators import Edit, Mutant, numbered

OTHER_INDEX = {"threadIdx": "blockIdx", "blockIdx": "threadIdx",
               "blockDim": "gridDim", "gridDim": "blockDim"}
# What an atomic operation stores, given the old value and its arguments.
PLAIN = {"atomicAdd": "old + {0}", "atomicSub": "old - {0}", "atomicExch": "{0}",
         "atomicMax": "old > {0} ? old : {0}", "atomicMin": "old < {0} ? old : {0}",
         "atomicAnd": "old & {0}", "atomicOr": "old | {0}", "atomicXor": "old ^ {0}",
         "atomicCAS": "old == {0} ? {1} : old"}


def cuda_mutants(file: str, text: str) -> list[Mutant]:
    """All of a CUDA source, in the order of their places."""
    source = Source(text)
    return numbered(file, source, _cuda_edits(source))


def _cuda_edits(source: Source) -> Iterator[Edit]:
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
