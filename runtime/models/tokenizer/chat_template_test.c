/*
 * Templates against the texts that the package jinja2 makes of them, set up as Transformers has it
 * (trim_blocks and lstrip_blocks); and what is refused, by its name.
 */
#include "chat_template.h"

#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

static struct tol_gguf_text text_of(const char *text) {
    return (struct tol_gguf_text){text, strlen(text)};
}

static tol_status render(const char *source, char **text, size_t *bytes) {
    const struct tol_chat_message messages[] = {{"system", text_of("  be brief\n")},
                                                {"user", text_of("H\303\244llo \"x\"\\")},
                                                {"assistant", text_of("sure")}};
    return tol_chat_render(text_of(source),
                           &(struct tol_chat){.messages = messages,
                                              .count = 3,
                                              .adds_prompt = true,
                                              .bos = text_of("<s>"),
                                              .eos = text_of("</s>")},
                           text, bytes);
}

static const struct {
    const char *source, *text;
} rendered[] = {
    {"{% for m in messages %}{{ '<|' + m['role'] + '|>\\n"
     "' + m['content'] + eos_token + '\\n"
     "' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n"
     "' }}{% endif %}",
     "<|system|>\n"
     "  be brief\n"
     "</s>\n"
     "<|user|>\n"
     "H\303\244llo \"x\"\\</s>\n"
     "<|assistant|>\n"
     "sure</s>\n"
     "<|assistant|>\n"},
    {"{%- if messages[0].role == 'system' -%}\n"
     "  {%- set rest = messages[1:] %}\n"
     "{%- else %}\n"
     "  {% set rest = messages %}\n"
     "{%- endif %}\n"
     "{{- bos_token }}\n"
     "{%- for m in rest %}\n"
     "  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}\n"
     "    {{- raise_exception('turns must alternate') }}\n"
     "  {%- endif %}\n"
     "  {{- '[' ~ loop.index ~ '/' ~ loop.length ~ '] ' ~ m.content | trim }}{{ ';' if not "
     "loop.last }}\n"
     "{%- endfor %}\n",
     "<s>[1/2] H\303\244llo \"x\"\\;[2/2] sure"},
    {"{% set ns = namespace(n=0, seen=false) %}\n"
     "{% for m in messages if m.role != 'system' %}\n"
     "    {% if m.content.startswith('H') and loop.first %}\n"
     "        {% set ns.seen = true %}\n"
     "    {% elif tools is not defined and not ns.seen %}\n"
     "never\n"
     "    {% else %}\n"
     "  {{ m.content | tojson }}\n"
     "    {% endif %}\n"
     "    {% set ns.n = ns.n + loop.index %}\n"
     "{% endfor %}\n"
     "seen={{ ns.seen }} n={{ ns.n }} of {{ messages | length }}",
     "  \"sure\"\n"
     "seen=True n=3 of 3"},
    {"a {# dropped #} b\n"
     "  {# a line #}\n"
     "  {%+ if true %} kept\n"
     "{% endif %}{{ 'x' in 'xyz' }}{{ 'role' in messages[0] }}{{ 'q' not in ['p', 'q'] }}\n"
     "\t{%- if none is none and 7 // 2 == 3 and -7 % 3 == 2 %} {{ -3 * 2 + 1 }}{% endif -%}\n"
     "  end\n"
     "\n",
     "a  b\n"
     "   kept\n"
     "TrueTrueFalse -5end\n"},
    {"{{ messages[0] | tojson }}{{ messages[-1].content[1:3] }}{{ missing }}{{ messages[9] }}{{ "
     "none }}{{ 'a' ~ true ~ 1 }}{{ messages[0].content.strip() }}|",
     "{\"role\": \"system\", \"content\": \"  be brief\\n"
     "\"}urNoneaTrue1be brief|"},
    {"{% for x in missing %}never{% endfor %}{% for x in [1, 'b'] %}{% set y = x %}{{ y }}{{ ',' "
     "if loop.first else '.' }}{% endfor %}{{ y }}{{ 'b' > 'a' and 2 >= 2 }}{{ '' or 'other' }}{{ "
     "'\303\251' | length }}",
     "1,b.Trueother1"},
    {"{% for m in messages[::-1] %}{{ m.role[:-1] }}{{ (messages | length - 1) - loop.index0 }}"
     "{% endfor %}{{ bos_token[1:2:] }}{% if tools %}{% for a, b in tools | items %}{{ a }}"
     "{% endfor %}{% endif %}",
     "assistan2use1syste0s"},
    {"{% for m in messages[::-1] %}{{ m.role[:-1] }}{{ (messages | length - 1) - loop.index0 }}"
     "{% endfor %}{{ bos_token[1:2:] }}{% if tools %}{% for a, b in tools | items %}{{ a }}"
     "{% endfor %}{% endif %}",
     "assistan2use1syste0s"},
    {"{{ strftime_now is defined }}{{ strftime_now('%Y') | length }}{{ strftime_now('a%%') }}",
     "True4a%"}};

Test(chat_template, texts_are_jinjas) {
    for (size_t i = 0; i < sizeof rendered / sizeof rendered[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        MUST(render(rendered[i].source, &text, &bytes));
        cr_assert(bytes == strlen(text));
        cr_assert_str_eq(text, rendered[i].text, "%zu: %s", i, text);
        free(text);
    }
}

Test(chat_template, what_is_not_of_the_subset_is_refused_by_name) {
    static const struct {
        const char *source, *says;
        tol_status status;
    } cases[] = {{"{% macro m() %}{% endmacro %}",
                  "line 1 of the chat template: it has the statement 'macro'", TOL_UNSUPPORTED},
                 {"a\n\n{{ date_of('%Y') }}",
                  "line 3 of the chat template: it calls the function "
                  "'date_of'",
                  TOL_UNSUPPORTED},
                 {"{{ messages | map('x') }}",
                  "the filter 'map' with arguments; this worker knows trim", TOL_UNSUPPORTED},
                 {"{{ messages is sequence }}", "the test 'sequence'", TOL_UNSUPPORTED},
                 {"{{ 'a'.split('x') }}", "calls 'split' of a string", TOL_UNSUPPORTED},
                 {"{{ messages[::2] }}", "a slice with a step", TOL_UNSUPPORTED},
                 {"{% for m in messages %}{{ loop.previtem }}{% endfor %}", "it has loop.previtem",
                  TOL_UNSUPPORTED},
                 {"{{ messages[] }}", "']' stands where a value was expected", TOL_INVALID_FILE},
                 {"{{ {'a': 1} }}", "a mapping in braces", TOL_UNSUPPORTED},
                 {"{% for a, b in messages %}{% endfor %}", "a loop over pairs", TOL_UNSUPPORTED},
                 {"{{ messages }}", "it prints a list", TOL_UNSUPPORTED},
                 {"{{ 1 < 2 < 3 }}", "a chain of comparisons", TOL_UNSUPPORTED},
                 {"{{ 'H\303\244'[0:1] }}", "not ASCII", TOL_UNSUPPORTED},
                 {"{{ raise_exception('no system message') }}",
                  "it refuses this conversation: no system message", TOL_INVALID_ARGUMENT},
                 {"{{ 1 + 'a' }}", "a number + a string", TOL_INVALID_FILE},
                 {"{{ missing.field }}", "'missing' is undefined", TOL_INVALID_FILE},
                 {"{{ 1 // 0 }}", "a division by 0", TOL_INVALID_FILE},
                 {"{% if true %}", "'' stands where endif was expected", TOL_INVALID_FILE},
                 {"{% endfor %}", "'endfor' ends nothing", TOL_INVALID_FILE},
                 {"{{ 'abc }}", "a string has no end", TOL_INVALID_FILE},
                 {"{# abc", "a comment has no end", TOL_INVALID_FILE},
                 {"{{ 1 2 }}", "'2' stands where }} was expected", TOL_INVALID_FILE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        MUST_FAIL(render(cases[i].source, &text, &bytes), cases[i].status, cases[i].says);
        cr_assert(text == NULL, "%s", cases[i].source);
    }
    /* A branch that is not taken may have functions, filters and tests of any name. */
    char *text = NULL;
    size_t bytes = 0;
    MUST(render("{% if tools %}{{ date_of('%Y') | indent(2) }}{% endif %}ok", &text, &bytes));
    cr_assert_str_eq(text, "ok");
    free(text);
    MUST_FAIL(tol_chat_render(text_of("a"), NULL, &text, &bytes), TOL_INVALID_ARGUMENT, "messages");
}

/* Levels, and steps or their memory, have limits, and a namespace may contain itself. */
Test(chat_template, a_template_cannot_take_everything) {
    enum { DEEP = 4000 };
    static char deep[DEEP + 20];
    char *text = NULL;
    size_t bytes = 0;
    memcpy(deep, "{{ ", 3);
    memset(deep + 3, '(', DEEP);
    MUST_FAIL(render(deep, &text, &bytes), TOL_OVER_LIMIT, "100 levels");
    memset(deep + 3, '-', DEEP);
    MUST_FAIL(render(deep, &text, &bytes), TOL_OVER_LIMIT, "100 levels");
    MUST_FAIL(render("{% set a = namespace() %}{% set a.x = a %}{{ a | tojson }}", &text, &bytes),
              TOL_OVER_LIMIT, "100 levels");
    strcpy(deep, "{% set x = 'aaaaaaaaaaaaaaaa' %}");
    for (int i = 0; i < 40; i++) strcat(deep, "{% set x = x + x %}");
    MUST_FAIL(render(deep, &text, &bytes), TOL_OVER_LIMIT, "64 MiB");
    deep[0] = '\0';
    for (int i = 0; i < 14; i++) strcat(deep, "{% for a in messages %}");
    strcat(deep, "{{ a.role }}");
    for (int i = 0; i < 14; i++) strcat(deep, "{% endfor %}");
    MUST_FAIL(render(deep, &text, &bytes), TOL_OVER_LIMIT, "it takes more than");
    cr_assert(text == NULL);
}
