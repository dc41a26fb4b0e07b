#!/usr/bin/env python3
"""What each operator of ci/mutate makes of a line of C and of CUDA C, and what none may touch."""

import pathlib
import sys
import unittest

from mutation.lexer import Source
from mutation.operators import Mutant, c_edits, cuda_edits, mutants, statuses

STATUS = statuses("TOL_STATUS(OK, \"\")\nTOL_STATUS(BAD, \"\")\nTOL_STATUS(WORSE, \"\")\n")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = {"relational": ("< <=", "<= <", "> >=", ">= >", "== !=", "!= =="),
         "arithmetic": ("+ -", "- +", "* /", "/ *", "% *", "<< >>", ">> <<", "& |", "| &", "^ |")}
# Operator, a line of a function, and what becomes of it.
C = (
    ("negated", "if (a < b) g();", "if (!(a < b)) g();"),
    ("negated", "while (g(a)) g();", "while (!(g(a))) g();"),
    ("negated", "x = a < b ? a : b;", "x = !(a < b) ? a : b;"),
    ("negated", 'TOL_CHECK(g(a, b), TOL_BAD, "t");', 'TOL_CHECK(!(g(a, b)), TOL_BAD, "t");'),
    ("negated", "if (a == b) g();"),  # the relational mutant is the same
    ("logical", "x = a && b || g();", "x = a || b || g();", "x = a && b && g();"),
    ("arithmetic", "a++;", "a--;"),
    *(("arithmetic", text) for text in ("int *x = &a;", "x = -a;", "x = (int)-a;", "return *p;",
                                        "g(&a, *p, -b);")),
    ("constant", "x = 0;", "x = 1;"), ("constant", "x = 1u;", "x = 0u;"),
    ("constant", "x = 0x10;", "x = 0xf;", "x = 0x11;"), ("constant", "x = true;", "x = false;"),
    ("constant", "x[2] = a;", "x[1] = a;", "x[3] = a;"),
    *(("constant", text) for text in ("char x[64];", "struct s x = {0};", 'x = "12";', "x = 1.5;",
                                      "/* 1 */", "assert(a == 1);")),
    *(("deleted", text, ";") for text in ("g(a);", "x = a;", "*x = a;", "break;", "goto out;",
                                          "a++;", "x->y[a].z(b);")),
    ("deleted", "if (a) return b;", "if (a) ;"),
    *(("deleted", text) for text in ("return a;", "int x = a;", "size_t x = a;", "CUdevice *x;",
                                     "struct s *x = a;", "(void)a;", "for (; a < b; a++) { }",
                                     "out: { }", "assert(a);")),
    ("status", "return TOL_OK;", "return TOL_BAD;"),
    ("status", "return TOL_WORSE;", "return TOL_BAD;"),
    ("status", "return CUDA_SUCCESS;", "return CUDA_ERROR_UNKNOWN;"),
    ("status", "return TOL_TIMEOUT_MS;"))
CUDA = (
    ("gpu_index_replacement", "b = threadIdx.x;", "b = blockIdx.x;"),
    ("gpu_index_replacement", "b = blockIdx.y * blockDim.y;", "b = threadIdx.y * blockDim.y;",
     "b = blockIdx.y * gridDim.y;"),
    ("gpu_index_increment", "b = gridDim.z;", "b = (gridDim.z + 1);"),
    ("gpu_index_decrement", "b = threadIdx.x;", "b = (threadIdx.x - 1);"),
    *(("gpu_index_increment", text) for text in ("b = x.threadIdx;", "// threadIdx.x\nb = 1;",
                                                 'f("blockIdx.x");')),
    ("sync_removal", "__syncthreads();", ";"),
    ("sync_removal", "if (b) __syncwarp(b);", "if (b) ;"),
    ("sync_removal", "b = __syncthreads_or(b);"),
    ("share_removal", "__shared__ float t[32];", "float t[32];"),
    ("share_removal", "extern __shared__ float t[];"),
    ("atom_removal", "atomicAdd(a + f(1, 2), b);",
     "[&] { volatile auto *at = a + f(1, 2); auto old = *at; *at = old + (b); return old; }();"),
    ("atom_removal", "b = atomicCAS(a, 0, b);", "b = [&] { volatile auto *at = a; auto old = *at; "
     "*at = old == (0) ? (b) : old; return old; }();"),
    ("atom_removal", "atomicAdd(a);"))


def of_c(text: str) -> list[Mutant]:
    return mutants("f.c", text, lambda source: c_edits(source, STATUS))


class TheOperators(unittest.TestCase):
    def test_each_makes_these_edits_and_no_other(self) -> None:
        pairs = [(operator, f"x = a {one} b;", f"x = a {other} b;")
                 for operator, texts in PAIRS.items() for one, other in map(str.split, texts)]
        pairs += [("arithmetic", f"x {one}= a;", f"x {other}= a;")
                  for one, other in map(str.split, PAIRS["arithmetic"])]
        for operator, line, *after in (*pairs, *C):
            found = of_c(f"int f(int a, int b) {{\n{line}\n}}\n")
            self.assertEqual([each.after for each in found if each.operator == operator], after,
                             f"{operator}: {line}")
        for operator, line, *after in CUDA:
            text = f"__global__ void k(int *a, int b) {{\n{line}\n}}\n"
            found = mutants("k.cu", text, cuda_edits)
            self.assertEqual([each.after for each in found if each.operator == operator], after,
                             f"{operator}: {line}")

    def test_only_code_is_changed(self) -> None:
        text = ('#define A (1 + 2)\nenum { B = 1 };\nstatic const int c[] = {1, 2};\n'
                "struct d { int x : 1; };\nint f(int a[2]);\nOP2(add, u32, u32, x + y)\n")
        self.assertEqual([mutant.after for mutant in of_c(text)], ["OP2(add, u32, u32, x - y)"])

    def test_an_edit_keeps_the_number_of_lines(self) -> None:
        text = "void f(void) {\n    g(1,\n      2);\n}\n"
        for mutant in of_c(text):
            self.assertEqual(mutant.apply(text).count("\n"), text.count("\n"))
            self.assertEqual(mutant.apply(text).split("\n")[-2], "}")

    def test_equal_lines_are_told_apart(self) -> None:
        found = of_c("void f(void) {\n    g();\n    g();\n}\n")
        self.assertEqual([(mutant.line, mutant.nth) for mutant in found], [(2, 0), (3, 1)])
        self.assertEqual(len({mutant.key for mutant in found}), 2)

    def test_every_bracket_has_a_partner_in_our_sources(self) -> None:
        for path in sorted((ROOT / "runtime").rglob("*.c"))[:60]:
            source = Source(path.read_text())
            for index, token in enumerate(source.tokens):
                if token.kind == "sign" and token.text in "()[]{}":
                    self.assertIn(index, source.partner, f"{path}: {token}")


if __name__ == "__main__":
    sys.exit(unittest.main())
