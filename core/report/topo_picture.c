/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The ranks of a plan on the machine, as an SVG picture: a box for each NUMA node, in it a box for
 * each core with its CPUs in the colour of their rank, a line for each rank, and a box for each
 * device with the ranks that use it. Cores that share a level-3 cache are side by side. There are
 * twelve colours, so the numbers of the ranks are written too: in the lines, and as the title of
 * each CPU, which browsers show under the pointer.
 */
#include "base/json.h"
#include "base/text.h"
#include "report/topo_ranks.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 920.0
#define MARGIN 20.0
#define PADDING 12.0
#define LINE 20.0
#define CELL_WIDTH 30.0
#define CELL_HEIGHT 18.0
#define CORE_GAP 6.0 /* between cores, and between rows of cores */
#define L3_GAP 10.0  /* in addition, between cores of different caches */
#define DEVICE_WIDTH 140.0
#define DEVICE_HEIGHT 40.0
#define COLOUR_COUNT 12u
#define LINE_LIMIT 130u /* bytes of a line that are shown; a list of many CPUs is longer */
#define SLICE_LIMIT 4u  /* ranks of a CPU that are drawn in it */

/* CSS classes: k0 to k11 for ranks, v for reserved CPUs, x for CPUs without a rank, f for CPUs that
 * the process may not use, n for frames. */
static const char style[] =
    "<style>\n"
    "text{font:12px sans-serif;fill:#222}.t{font-size:16px;font-weight:bold}"
    ".c{font-size:11px;text-anchor:middle;fill:#fff}.p{font-size:11px;text-anchor:middle}\n"
    ".n{fill:none;stroke:#888}.x{fill:#777}.f{fill:none;stroke:#888;stroke-dasharray:2}"
    ".v{fill-opacity:.35;stroke:#888;stroke-dasharray:3}\n"
    ".k0{fill:#1f6fb4}.k1{fill:#b3530b}.k2{fill:#2a7d2a}.k3{fill:#b32d2e}.k4{fill:#7a53a8}"
    ".k5{fill:#7d5146}\n"
    ".k6{fill:#b03f8c}.k7{fill:#0b7680}.k8{fill:#7c7410}.k9{fill:#3949ab}.k10{fill:#00695c}"
    ".k11{fill:#8e24aa}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.c{fill:#fff}}\n"
    "</style>\n";

/* Add a text of another text, with XML's special characters escaped. */
static void add_escaped(struct ds_accel__text *out, struct ds_accel__text *text)
{
    out->failed |= text->failed;
    if (text->data != NULL) {
        ds_accel__xml_add(out, text->data);
    }
    ds_accel__text_clear(text);
}

/* Draw a line of text, and release it. A long one is cut, and is the title as a whole. */
static void draw_line(struct ds_accel__text *out, struct ds_accel__text *line, double x, double y)
{
    struct ds_accel__text whole = {0};
    size_t size = LINE_LIMIT;

    ds_accel__text_add(out, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
    if (line->size_bytes > LINE_LIMIT) {
        ds_accel__text_add_bytes(&whole, line->data, line->size_bytes);
        ds_accel__text_add(out, "<title>");
        add_escaped(out, &whole);
        ds_accel__text_add(out, "</title>");
        while (((unsigned char)line->data[size] & 0xc0) == 0x80) { /* not inside a character */
            size--;
        }
        line->data[size] = '\0';
        line->size_bytes = size;
        ds_accel__text_add(line, "...");
    }
    add_escaped(out, line);
    ds_accel__text_add(out, "</text>\n");
}

static void draw_rect(struct ds_accel__text *out, const char *class, double x, double y,
                      double width, double height)
{
    ds_accel__text_add(out,
                       "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                       "height=\"%.1f\"/>",
                       class, x, y, width, height);
}

/* ---- CPUs ----------------------------------------------------------------------------------- */

struct user {
    size_t position; /* of the rank */
    bool is_reserved;
};

/* Find the ranks of a CPU. Returns their number; the first SLICE_LIMIT of them are written. */
static size_t find_users(const struct ds_accel__topo_ranks *ranks, uint32_t cpu,
                         struct user users[SLICE_LIMIT])
{
    size_t count = 0;

    for (size_t i = 0; i < ranks->rank_count; i++) {
        bool is_bound = ds_accel__set_has(&ranks->ranks[i].cpus, cpu);

        if (is_bound || ds_accel__set_has(&ranks->ranks[i].reserved, cpu)) {
            if (count < SLICE_LIMIT) {
                users[count] = (struct user){.position = i, .is_reserved = !is_bound};
            }
            count++;
        }
    }
    return count;
}

static long long rank_number(const struct ds_accel__topo_ranks *ranks, size_t position)
{
    return (long long)json_integer_value(json_object_get(ranks->ranks[position].tree, "rank"));
}

static void write_users(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                        uint32_t cpu, const struct user *users, size_t count)
{
    ds_accel__text_add(out, "<title>CPU %u: ", cpu);
    if (count == 0) {
        ds_accel__text_add(out,
                           ds_accel__set_has(&ranks->allowed, cpu) ? "no rank" : "not allowed");
    }
    for (size_t i = 0; i < count && i < SLICE_LIMIT; i++) {
        ds_accel__text_add(out, "%s%srank %lld", i > 0 ? ", " : "",
                           users[i].is_reserved ? "reserved by " : "",
                           rank_number(ranks, users[i].position));
    }
    if (count > SLICE_LIMIT) {
        ds_accel__text_add(out, " and %zu more", count - SLICE_LIMIT);
    }
    ds_accel__text_add(out, "</title>");
}

static void draw_cpu(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                     uint32_t cpu, double x, double y)
{
    struct user users[SLICE_LIMIT];
    size_t count = find_users(ranks, cpu, users);
    size_t slice_count = count < SLICE_LIMIT ? count : SLICE_LIMIT;
    bool is_allowed = ds_accel__set_has(&ranks->allowed, cpu);
    bool is_pale = count > 0 ? users[0].is_reserved : !is_allowed;

    ds_accel__text_add(out, "<g>");
    write_users(out, ranks, cpu, users, count);
    if (count == 0) {
        draw_rect(out, is_allowed ? "x" : "f", x, y, CELL_WIDTH, CELL_HEIGHT);
    }
    for (size_t i = 0; i < slice_count; i++) {
        double width = CELL_WIDTH / (double)slice_count;
        char class[16];

        snprintf(class, sizeof(class), "k%zu%s", users[i].position % COLOUR_COUNT,
                 users[i].is_reserved ? " v" : "");
        draw_rect(out, class, x + width * (double)i, y, width, CELL_HEIGHT);
    }
    ds_accel__text_add(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%u</text></g>\n",
                       is_pale ? "p" : "c", x + CELL_WIDTH / 2, y + 13, cpu);
}

/* The number of a core's CPUs that are on the node. */
static size_t count_cpus(const struct ds_accel__topo_core *core,
                         const struct ds_accel__topo_node *node)
{
    size_t count = 0;

    for (uint32_t i = 0; i < core->cpus.count; i++) {
        count += ds_accel__set_has(&node->cpus, core->cpus.items[i]);
    }
    return count;
}

/* Draw the CPUs of a core that are on the node, one below the other. */
static void draw_core(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                      const struct ds_accel__topo_core *core,
                      const struct ds_accel__topo_node *node, double x, double y)
{
    double at = y;

    for (uint32_t i = 0; i < core->cpus.count; i++) {
        if (ds_accel__set_has(&node->cpus, core->cpus.items[i])) {
            draw_cpu(out, ranks, core->cpus.items[i], x, at);
            at += CELL_HEIGHT;
        }
    }
    draw_rect(out, "n", x - 1, y - 1, CELL_WIDTH + 2, at - y + 2);
    ds_accel__text_add(out, "\n");
}

/* Do cores share a cache? On a machine that does not show its caches, each core has its own. */
static bool has_shared_l3(const struct ds_accel__topo_ranks *ranks)
{
    for (size_t i = 0; i < ranks->core_count; i++) {
        for (size_t k = i + 1; k < ranks->core_count; k++) {
            if (ranks->cores[i].l3 == ranks->cores[k].l3) {
                return true;
            }
        }
    }
    return false;
}

/* Draw the cores of a node in rows. Returns the y coordinate below them. */
static double draw_cores(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                         const struct ds_accel__topo_node *node, double y)
{
    const struct ds_accel__topo_core *before = NULL;
    bool has_gaps = has_shared_l3(ranks);
    double x = MARGIN + PADDING;
    size_t highest = 0;

    for (size_t i = 0; i < ranks->core_count; i++) {
        const struct ds_accel__topo_core *core = &ranks->cores[i];
        size_t count = count_cpus(core, node);

        if (count == 0) {
            continue;
        }
        if (has_gaps && before != NULL && core->l3 != before->l3) {
            x += L3_GAP;
        }
        if (x + CELL_WIDTH > WIDTH - MARGIN - PADDING) {
            x = MARGIN + PADDING;
            y += CELL_HEIGHT * (double)highest + CORE_GAP;
            highest = 0;
        }
        draw_core(out, ranks, core, node, x, y);
        before = core;
        x += CELL_WIDTH + CORE_GAP;
        highest = count > highest ? count : highest;
    }
    return highest > 0 ? y + CELL_HEIGHT * (double)highest + CORE_GAP : y;
}

/* ---- ranks and devices ---------------------------------------------------------------------- */

static void draw_rank(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                      size_t position, double y)
{
    const struct ds_accel__topo_rank *rank = &ranks->ranks[position];
    struct ds_accel__text line = {0};
    char class[16];

    snprintf(class, sizeof(class), "k%zu", position % COLOUR_COUNT);
    draw_rect(out, class, MARGIN + PADDING, y + 3, 14, 14);
    ds_accel__text_add(&line, "rank %lld: ", rank_number(ranks, position));
    ds_accel__topo_rank_device(rank, &line);
    if (rank->nodes.count > 0) {
        ds_accel__text_add(&line, ", memory ");
        ds_accel__topo_rank_memory(rank, &line);
    }
    ds_accel__text_add(&line, ", CPUs ");
    ds_accel__set_write(&rank->cpus, &line);
    if (rank->reserved.count > 0) {
        ds_accel__text_add(&line, ", reserved CPUs ");
        ds_accel__set_write(&rank->reserved, &line);
    }
    draw_line(out, &line, MARGIN + PADDING + 22, y + 14);
}

static double draw_ranks(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                         const struct ds_accel__topo_node *node, double y)
{
    for (size_t i = 0; i < ranks->rank_count; i++) {
        if (ds_accel__topo_rank_is_on(&ranks->ranks[i], node)) {
            draw_rank(out, ranks, i, y);
            y += LINE;
        }
    }
    return y;
}

static void draw_device(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                        const json_t *device, double x, double y)
{
    struct ds_accel__text users = {0};
    char class[16] = "x";
    bool is_used = false;

    for (size_t i = 0; i < ranks->rank_count && !is_used; i++) {
        if (strcmp(ds_accel__json_string(ranks->ranks[i].tree, "device"),
                   ds_accel__json_string(device, "id")) == 0) {
            snprintf(class, sizeof(class), "k%zu", i % COLOUR_COUNT);
            is_used = true;
        }
    }
    draw_rect(out, class, x, y, DEVICE_WIDTH, DEVICE_HEIGHT);
    ds_accel__text_add(out, "<text class=\"c\" x=\"%.1f\" y=\"%.1f\">", x + DEVICE_WIDTH / 2,
                       y + 16);
    ds_accel__xml_add(out, ds_accel__json_string(device, "id"));
    ds_accel__text_add(out, "</text><text class=\"c\" x=\"%.1f\" y=\"%.1f\">", x + DEVICE_WIDTH / 2,
                       y + 32);
    ds_accel__topo_device_ranks(ranks, device, &users);
    add_escaped(out, &users);
    ds_accel__text_add(out, "</text>\n");
}

static double draw_devices(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                           const struct ds_accel__topo_node *node, double y)
{
    const json_t *devices = json_object_get(ranks->tree, "devices");
    double x = MARGIN + PADDING;
    bool is_empty = true;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (!ds_accel__topo_node_has(node, device)) {
            continue;
        }
        if (x + DEVICE_WIDTH > WIDTH - MARGIN - PADDING) {
            x = MARGIN + PADDING;
            y += DEVICE_HEIGHT + CORE_GAP;
        }
        draw_device(out, ranks, device, x, y + CORE_GAP);
        x += DEVICE_WIDTH + CORE_GAP;
        is_empty = false;
    }
    return is_empty ? y : y + DEVICE_HEIGHT + 2 * CORE_GAP;
}

/* ---- the picture ---------------------------------------------------------------------------- */

static double draw_node(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks,
                        const struct ds_accel__topo_node *node, double top)
{
    struct ds_accel__text title = {0};
    double y = top + LINE + CORE_GAP;

    if (node->tree != NULL) {
        ds_accel__text_add(&title, "NUMA node %lld, ",
                           (long long)json_integer_value(json_object_get(node->tree, "id")));
    } else {
        ds_accel__text_add(&title, "NUMA node not known, ");
    }
    ds_accel__text_add(&title, node->cpus.count > 0 ? "CPUs " : "no CPUs");
    ds_accel__set_write(&node->cpus, &title);
    draw_line(out, &title, MARGIN + PADDING, top + 18);
    y = draw_cores(out, ranks, node, y);
    y = draw_ranks(out, ranks, node, y);
    y = draw_devices(out, ranks, node, y);
    draw_rect(out, "n", MARGIN, top, WIDTH - 2 * MARGIN, y - top + CORE_GAP);
    ds_accel__text_add(out, "\n");
    return y + 3 * CORE_GAP;
}

static double draw_legend(struct ds_accel__text *out, double y)
{
    static const struct {
        const char *class;
        const char *meaning;
    } rows[] = {
        {"k0", "a rank's CPU or device"},
        {"k0 v", "reserved by a rank"},
        {"x", "no rank"},
        {"f", "this process may not use it"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        double x = MARGIN + 210.0 * (double)i;

        draw_rect(out, rows[i].class, x, y, 14, 14);
        ds_accel__text_add(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 22, y + 11,
                           rows[i].meaning);
    }
    return y + LINE + MARGIN;
}

static void draw(struct ds_accel__text *out, const struct ds_accel__topo_ranks *ranks)
{
    struct ds_accel__text title = {0};
    struct ds_accel__text shown = {0};
    struct ds_accel__text body = {0};
    double y = 44;

    for (size_t i = 0; i < ranks->node_count; i++) {
        if (ds_accel__topo_node_is_shown(ranks, &ranks->nodes[i])) {
            y = draw_node(&body, ranks, &ranks->nodes[i], y);
        }
    }
    y = draw_legend(&body, y);
    ds_accel__topo_ranks_title(ranks, &title);
    add_escaped(&shown, &title);
    ds_accel__text_add(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                       "aria-labelledby=\"title\" width=\"%.0f\" height=\"%.0f\" "
                       "viewBox=\"0 0 %.0f %.0f\">\n<title id=\"title\">%s</title>\n%s"
                       "<text class=\"t\" x=\"%.0f\" y=\"28\">%s</text>\n%s</svg>\n",
                       WIDTH, y, WIDTH, y, shown.data != NULL ? shown.data : "", style, MARGIN,
                       shown.data != NULL ? shown.data : "", body.data != NULL ? body.data : "");
    out->failed |= shown.failed || body.failed;
    ds_accel__text_clear(&shown);
    ds_accel__text_clear(&body);
}

void ds_accel__topo_ranks_svg(const json_t *tree, struct ds_accel__text *out)
{
    struct ds_accel__topo_ranks ranks;

    if (ds_accel__topo_ranks_read(tree, &ranks) < 0) {
        out->failed = true;
        return;
    }
    draw(out, &ranks);
    ds_accel__topo_ranks_clear(&ranks);
}
