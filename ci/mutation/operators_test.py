#!/usr/bin/env python3
"""What each operator of ci/mutate makes of a line of C, and what none of them may touch."""

import pathlib
import sys
import unittest

from mutation.lexer import Source
from mutation.operators import Operators, statuses

STATUS = statuses("TOL_STATUS(OK, \"\")\nTOL_STATUS(BAD, \"\")\nTOL_STATUS(WORSE, \"\")\n")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def edits(text: str, operator: str = "") -> list[str]:
    """The mutants of a function with this body: operator and line."""
    source = f"int f(int a, int b) {{\n{text}\n}}\n"
    return [f"{mutant.operator}: {mutant.after}"
            for mutant in Operators(STATUS).mutants("f.c", source)
            if operator in ("", mutant.operator)]


class TheOperators(unittest.TestCase):
    def test_relations_get_another_bound(self) -> None:
        for sign, other in (("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="),
                            ("!=", "==")):
            self.assertEqual(edits(f"x = a {sign} b;", "relational"),
                             [f"relational: x = a {other} b;"])

    def test_conditions_are_negated(self) -> None:
        self.assertEqual(edits("if (a < b) g();", "negated"), ["negated: if (!(a < b)) g();"])
        self.assertEqual(edits("while (g(a)) g();", "negated"), ["negated: while (!(g(a))) g();"])
        self.assertEqual(edits("x = a < b ? a : b;", "negated"), ["negated: x = !(a < b) ? a : b;"])
        self.assertEqual(edits('TOL_CHECK(g(a, b), TOL_BAD, "text");', "negated"),
                         ['negated: TOL_CHECK(!(g(a, b)), TOL_BAD, "text");'])
        # The same as the relational mutant.
        self.assertEqual(edits("if (a == b) g();", "negated"), [])

    def test_and_and_or_are_exchanged(self) -> None:
        self.assertEqual(edits("x = a && b || g();", "logical"),
                         ["logical: x = a || b || g();", "logical: x = a && b && g();"])

    def test_arithmetic_is_exchanged_where_it_has_two_operands(self) -> None:
        for sign, other in (("+", "-"), ("-", "+"), ("*", "/"), ("/", "*"), ("%", "*"),
                            ("<<", ">>"), (">>", "<<"), ("&", "|"), ("|", "&"), ("^", "|")):
            self.assertEqual(edits(f"x = a {sign} b;", "arithmetic"),
                             [f"arithmetic: x = a {other} b;"])
            self.assertEqual(edits(f"x {sign}= a;", "arithmetic"), [f"arithmetic: x {other}= a;"])
        self.assertEqual(edits("a++;", "arithmetic"), ["arithmetic: a--;"])
        for text in ("int *x = &a;", "x = -a;", "x = (int)-a;", "return *p;", "g(&a, *p, -b);"):
            self.assertEqual(edits(text, "arithmetic"), [], text)

    def test_numbers_move_by_one(self) -> None:
        self.assertEqual(edits("x = 0;", "constant"), ["constant: x = 1;"])
        self.assertEqual(edits("x = 1u;", "constant"), ["constant: x = 0u;"])
        self.assertEqual(edits("x = 0x10;", "constant"), ["constant: x = 0xf;",
                                                          "constant: x = 0x11;"])
        self.assertEqual(edits("x = true;", "constant"), ["constant: x = false;"])
        self.assertEqual(edits("x[2] = a;", "constant"), ["constant: x[1] = a;",
                                                          "constant: x[3] = a;"])
        for text in ("char x[64];", "struct s x = {0};", 'x = "12";', "x = 1.5;", "/* 1 */",
                     "assert(a == 1);"):
            self.assertEqual(edits(text, "constant"), [], text)

    def test_statements_are_deleted(self) -> None:
        for text in ("g(a);", "x = a;", "*x = a;", "break;", "goto out;", "a++;", "x->y[a].z(b);"):
            self.assertEqual(edits(text, "deleted"), ["deleted: ;"], text)
        self.assertEqual(edits("if (a) return b;", "deleted"), ["deleted: if (a) ;"])
        for text in ("return a;", "int x = a;", "size_t x = a;", "struct s *x = a;", "CUdevice *x;",
                     "(void)a;", "for (; a < b; a++) { }", "out: { }", "assert(a);"):
            self.assertEqual(edits(text, "deleted"), [], text)

    def test_a_status_becomes_another(self) -> None:
        self.assertEqual(edits("return TOL_OK;", "status"), ["status: return TOL_BAD;"])
        self.assertEqual(edits("return TOL_WORSE;", "status"), ["status: return TOL_BAD;"])
        self.assertEqual(edits("return CUDA_SUCCESS;", "status"),
                         ["status: return CUDA_ERROR_UNKNOWN;"])
        self.assertEqual(edits("return TOL_TIMEOUT_MS;", "status"), [])

    def test_only_code_is_changed(self) -> None:
        text = ('#define A (1 + 2)\nenum { B = 1 };\nstatic const int c[] = {1, 2};\n'
                "struct d { int x : 1; };\nint f(int a[2]);\nOP2(add, u32, u32, x + y)\n")
        self.assertEqual([mutant.after for mutant in Operators(STATUS).mutants("f.c", text)],
                         ["OP2(add, u32, u32, x - y)"])

    def test_an_edit_keeps_the_number_of_lines(self) -> None:
        text = "void f(void) {\n    g(1,\n      2);\n}\n"
        for mutant in Operators(STATUS).mutants("f.c", text):
            self.assertEqual(mutant.apply(text).count("\n"), text.count("\n"))
            self.assertEqual(mutant.apply(text).split("\n")[-2], "}")

    def test_equal_lines_are_told_apart(self) -> None:
        found = Operators(STATUS).mutants("f.c", "void f(void) {\n    g();\n    g();\n}\n")
        self.assertEqual([(mutant.line, mutant.nth) for mutant in found], [(2, 0), (3, 1)])
        self.assertEqual(len({mutant.key for mutant in found}), 2)

    def test_every_bracket_has_a_partner_in_our_sources(self) -> None:
        for path in sorted((ROOT / "runtime/driver/core").glob("*.c")):
            source = Source(path.read_text())
            for index, token in enumerate(source.tokens):
                if token.kind == "sign" and token.text in "()[]{}":
                    self.assertIn(index, source.partner, f"{path}: {token}")


if __name__ == "__main__":
    sys.exit(unittest.main())
