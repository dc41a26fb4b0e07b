/*
 * Several texts in one file.
 */
#include "joined_text.h"

#include <criterion/criterion.h>
#include <string.h>

Test(joined_text, texts_are_cut_at_the_lines_of_their_names) {
    char file[] =
        "// about all\n//// one: 3:4: error\n.version 8.0\n//// two\n//// three: \n//////";
    struct joined_text one;
    char *at = joined_text_first(file);
    cr_assert(at == strstr(file, "//// one"));
    at = joined_text_cut(at, &one);
    cr_assert_str_eq(one.name, "one");
    cr_assert_str_eq(one.text, "//// one: 3:4: error\n.version 8.0\n");
    cr_assert_not_null(at);
    at = joined_text_cut(at, &one);
    cr_assert_str_eq(one.name, "two");
    cr_assert_str_eq(one.text, "//// two\n");
    cr_assert_not_null(at);
    cr_assert_null(joined_text_cut(at, &one));
    cr_assert_str_eq(one.name, "three");
    cr_assert_str_eq(one.text, "//// three: \n//////");
}

Test(joined_text, a_file_may_begin_with_a_text_or_have_none) {
    char named[] = "//// k", unnamed[] = ".version 8.0 //// k\n ////k\n////k\n";
    struct joined_text one;
    cr_assert_eq(joined_text_first(named), named);
    cr_assert_null(joined_text_cut(named, &one));
    cr_assert_str_eq(one.name, "k");
    cr_assert_null(joined_text_first(unnamed));
}
