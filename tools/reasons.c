/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Prints the manual page ds-accel-reasons(7), generated from core/reasons.def, the table from which
 * the program's messages come too. The build runs this program; it is not installed.
 */
#include <stdbool.h>
#include <stdio.h>

struct line {
    const char *gate; /* the line begins the section of this check ("": reasons of no check);
                       * NULL: a reason */
    const char *code_or_what;
    const char *meaning, *remedy;
};

static const struct line lines[] = {
#define GATE(name, what) {name, what, NULL, NULL},
#define REASON(id, code, meaning, remedy) {NULL, code, meaning, remedy},
#include "reasons.def"
#undef REASON
#undef GATE
};
#define LINE_COUNT (sizeof(lines) / sizeof(lines[0]))

static const char head[] =
    ".\\\" SPDX-License-Identifier: Apache-2.0\n"
    ".\\\" Copyright (c) 2026 the ds-accel authors\n"
    ".\\\" Made from core/reasons.def.\n"
    ".Dd November 21, 2026\n"
    ".Dt DS-ACCEL-REASONS 7\n"
    ".Os\n"
    ".Sh NAME\n"
    ".Nm ds-accel-reasons\n"
    ".Nd why an accelerator was not chosen, and what to do about it\n"
    ".Sh DESCRIPTION\n"
    "A reason is a code for why a plugin, and so its accelerator, was not chosen.\n"
    ".Cm ds-accel explain\n"
    "shows it with its meaning, the evidence (the\n"
    ".Dq detail )\n"
    "and the remedy;\n"
    ".Cm ds-accel list ,\n"
    "warnings and failures show the code and the detail.\n"
    "With\n"
    ".Fl -json\n"
    "it is the member\n"
    ".Dq reason\n"
    "of a candidate, plugin or entry; programs get it from\n"
    ".Fn ds_accel_candidate_get .\n"
    "Codes are never renamed and never given another meaning; later versions may add some.\n"
    ".Pp\n"
    "Plugins go through gates, and the first that fails decides the reason.\n"
    "They are, in this order:\n"
    ".Bl -tag -width quarantine -compact -offset indent\n";

static const char states[] =
    ".Sh STATES\n"
    "The state of a candidate is a word for a group of reasons.\n"
    ".Bl -tag -width not_probed\n"
    ".It Cm selected\n"
    "It was chosen.\n"
    ".It Cm available\n"
    "It passed every gate.\n"
    "Another one may have been chosen: without a reason, or with\n"
    ".Cm deferred .\n"
    ".It Cm unavailable\n"
    "The machine cannot serve it as it is: the gates power, hardware and probe.\n"
    ".It Cm error\n"
    "Probing or starting it failed: the gate probe,\n"
    ".Cm start_failed ,\n"
    ".Cm helper_missing ,\n"
    ".Cm helper_failed .\n"
    ".It Cm rejected\n"
    "The file must not or cannot be loaded, or its code does what no plugin may do:\n"
    "the gates trust, elf, note, hash, load, entry and conduct, and\n"
    ".Cm bad_name .\n"
    ".It Cm crashed\n"
    "It ended the process that probed it, or garbled its result.\n"
    ".It Cm timed_out\n"
    "It did not return in time.\n"
    ".It Cm disabled\n"
    "The configuration excludes it: the gate allow.\n"
    ".It Cm shadowed\n"
    "An earlier file has its name.\n"
    ".It Cm quarantined\n"
    "It was not probed, because it crashed or hung before: the gate quarantine.\n"
    ".It Cm not_probed\n"
    "No probe was needed:\n"
    ".Cm demand_only ,\n"
    ".Cm not_needed ,\n"
    ".Cm not_chosen .\n"
    ".El\n"
    ".Sh REASONS\n"
    "A remedy describes what turns the\n"
    ".Dq no\n"
    "into a\n"
    ".Dq yes .\n";

static const char tail[] = ".Sh SEE ALSO\n"
                           ".Xr ds-accel 1 ,\n"
                           ".Xr ds-accel.json 5 ,\n"
                           ".Xr ds-accel-plugin 7\n";

/* Write a line of plain text, escaped so that troff interprets nothing in it. Dashes are written as
 * ASCII minus signs, which can be copied from a page. */
static void put_text(const char *text, const char *end)
{
    if (text[0] == '.' || text[0] == '\'') {
        fputs("\\&", stdout);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\') {
            fputs("\\e", stdout);
        } else if (*c == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*c);
        }
    }
    puts(end);
}

static void put_gates(void)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (lines[i].gate != NULL && lines[i].gate[0] != '\0') {
            printf(".It Cm %s\n", lines[i].gate);
            put_text(lines[i].code_or_what, "");
        }
    }
    puts(".El");
}

static void put_reasons(void)
{
    bool in_list = false;

    for (size_t i = 0; i < LINE_COUNT; i++) {
        const struct line *line = &lines[i];

        if (line->gate != NULL) {
            bool is_empty = i + 1 == LINE_COUNT || lines[i + 1].gate != NULL;

            fputs(in_list ? ".El\n" : "", stdout);
            printf(line->gate[0] != '\0' ? ".Ss The gate %s\n" : ".Ss Outside the gates\n",
                   line->gate);
            puts(is_empty ? "It has no reason of its own." : ".Bl -tag -width Ds");
            in_list = !is_empty;
        } else {
            printf(".It Cm %s\n", line->code_or_what);
            put_text(line->meaning, ".");
            puts(".Em Remedy :");
            put_text(line->remedy, ".");
        }
    }
    fputs(in_list ? ".El\n" : "", stdout);
}

int main(void)
{
    fputs(head, stdout);
    put_gates();
    fputs(states, stdout);
    put_reasons();
    fputs(tail, stdout);
    return fflush(stdout) != 0 || ferror(stdout) != 0;
}
