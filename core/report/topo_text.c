/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The report topo as text, with a matrix of how close each two vertices (devices and network
 * interfaces) are, and as a picture of the matrix. Both show the link between two vertices, if
 * there is one other than PCI, and otherwise the closest part of the machine that both are attached
 * to. A report with a plan shows the plan's ranks instead (topo_ranks.c).
 */
#include "base/json.h"
#include "base/text.h"
#include "report/report.h"
#include "report/topo_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The grades of closeness, from the nearest to the farthest. */
static const struct {
    const char *closeness;
    const char *code;
    const char *meaning;
    const char *colour; /* the terminal's colour code */
} grades[] = {
    {"device", "DEV", "one board: functions or partitions of the same device", "\033[32m"},
    {"switch", "SW", "below the same PCIe switch", "\033[32m"},
    {"root_port", "PORT", "below the same PCIe port of the processor", "\033[32m"},
    {"host_bridge", "HB", "below the same PCIe host bridge", "\033[36m"},
    {"numa_node", "NODE", "on the same NUMA node", "\033[33m"},
    {"machine", "SYS", "across NUMA nodes", "\033[31m"},
    {"unknown", "?", "the position of one of them is unknown", NULL},
};
#define GRADE_COUNT ARRAY_SIZE(grades)

static const struct {
    const char *kind;
    const char *code;
    const char *meaning;
} link_kinds[] = {
    {"nvlink", "NVL", "NVLink"},
    {"xgmi", "XGMI", "Infinity Fabric (XGMI)"},
    {"xe", "XE", "Xe Link"},
    {"hccs", "HCCS", "HCCS"},
    {"ethernet", "ETH", "the devices' own network ports"},
    {"other", "LNK", "links of another kind"},
    {"unknown", "LNK", "links of another kind"},
};

struct matrix {
    json_t *tree;
    json_t **vertices;        /* borrowed: devices, then network interfaces */
    const json_t **relations; /* [count * count]; NULL on the diagonal */
    size_t count;
    size_t device_count;
};

static size_t find_vertex(const struct matrix *matrix, const char *id)
{
    size_t i = 0;

    while (i < matrix->count && strcmp(ds_accel__json_string(matrix->vertices[i], "id"), id) != 0) {
        i++;
    }
    return i;
}

static void matrix_clear(struct matrix *matrix)
{
    free(matrix->vertices);
    free(matrix->relations);
}

static bool matrix_make(struct matrix *matrix, json_t *tree)
{
    json_t *devices = json_object_get(tree, "devices");
    json_t *nics = json_object_get(tree, "nics");
    json_t *relations = json_object_get(tree, "relations");

    *matrix = (struct matrix){.tree = tree, .device_count = json_array_size(devices)};
    matrix->count = matrix->device_count + json_array_size(nics);
    matrix->vertices = calloc(matrix->count + 1, sizeof(json_t *));
    matrix->relations = calloc(matrix->count * matrix->count + 1, sizeof(json_t *));
    if (matrix->vertices == NULL || matrix->relations == NULL) {
        matrix_clear(matrix);
        return false;
    }
    for (size_t i = 0; i < matrix->count; i++) {
        matrix->vertices[i] = i < matrix->device_count
                                  ? json_array_get(devices, i)
                                  : json_array_get(nics, i - matrix->device_count);
    }
    for (size_t i = 0; i < json_array_size(relations); i++) {
        const json_t *relation = json_array_get(relations, i);
        size_t a = find_vertex(matrix, ds_accel__json_string(relation, "a"));
        size_t b = find_vertex(matrix, ds_accel__json_string(relation, "b"));

        if (a < matrix->count && b < matrix->count) {
            matrix->relations[a * matrix->count + b] = relation;
            matrix->relations[b * matrix->count + a] = relation;
        }
    }
    return true;
}

/* The link to show: the first one other than PCI; NULL if there is none. */
static const json_t *shown_link(const json_t *relation, size_t *kind_out)
{
    const json_t *links = json_object_get(relation, "links");

    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);

        for (size_t k = 0; k < ARRAY_SIZE(link_kinds); k++) {
            if (strcmp(link_kinds[k].kind, ds_accel__json_string(link, "kind")) == 0) {
                *kind_out = k;
                return link;
            }
        }
    }
    return NULL;
}

static size_t grade_of(const json_t *relation)
{
    size_t grade = 0;

    while (grade + 1 < GRADE_COUNT &&
           strcmp(grades[grade].closeness, ds_accel__json_string(relation, "closeness")) != 0) {
        grade++;
    }
    return grade;
}

/* Write the text of a cell: "NVL18", "SW"; "-" for a vertex and itself. */
static void cell_text(const struct matrix *matrix, size_t row, size_t column, char *text,
                      size_t size)
{
    const json_t *relation = matrix->relations[row * matrix->count + column];
    size_t kind = 0;
    const json_t *link = shown_link(relation, &kind);

    if (relation == NULL) {
        snprintf(text, size, "-");
    } else if (link != NULL) {
        snprintf(text, size, "%s%lld", link_kinds[kind].code,
                 (long long)json_integer_value(json_object_get(link, "count")));
    } else {
        snprintf(text, size, "%s", grades[grade_of(relation)].code);
    }
}

static const char *cell_colour(const struct matrix *matrix, size_t row, size_t column)
{
    const json_t *relation = matrix->relations[row * matrix->count + column];
    size_t kind;

    if (relation == NULL) {
        return NULL;
    }
    return shown_link(relation, &kind) != NULL ? "\033[1;32m" : grades[grade_of(relation)].colour;
}

/* ---- text ----------------------------------------------------------------------------------- */

static int id_width(const struct matrix *matrix)
{
    int width = 6;

    for (size_t i = 0; i < matrix->count; i++) {
        int length = (int)strlen(ds_accel__json_string(matrix->vertices[i], "id"));

        width = length > width ? length : width;
    }
    return width + 2;
}

static void write_numa(struct ds_accel__text *out, const struct matrix *matrix,
                       const json_t *vertex)
{
    const json_t *node = json_object_get(vertex, "numa_node");
    const json_t *nodes = json_object_get(matrix->tree, "numa_nodes");
    const char *cpus = "?";

    if (!json_is_integer(node)) {
        ds_accel__text_add(out, "%-6s?\n", "?");
        return;
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *entry = json_array_get(nodes, i);

        if (json_equal(json_object_get(entry, "id"), node)) {
            cpus = ds_accel__json_string(entry, "cpus");
        }
    }
    ds_accel__text_add(out, "%-6lld%s\n", (long long)json_integer_value(node),
                       cpus[0] != '\0' ? cpus : "-");
}

static void write_matrix(struct ds_accel__text *out, const struct matrix *matrix, bool has_colour)
{
    int width = id_width(matrix);

    ds_accel__text_add(out, "%-*s", width, "");
    for (size_t i = 0; i < matrix->count; i++) {
        ds_accel__text_add(out, "%-*s", width, ds_accel__json_string(matrix->vertices[i], "id"));
    }
    ds_accel__text_add(out, "%-6sCPUS\n", "NUMA");
    for (size_t row = 0; row < matrix->count; row++) {
        ds_accel__text_add(out, "%-*s", width, ds_accel__json_string(matrix->vertices[row], "id"));
        for (size_t column = 0; column < matrix->count; column++) {
            const char *colour = has_colour ? cell_colour(matrix, row, column) : NULL;
            char text[32];

            cell_text(matrix, row, column, text, sizeof(text));
            ds_accel__text_add(out, "%s%s%s%*s", colour != NULL ? colour : "", text,
                               colour != NULL ? "\033[0m" : "", width - (int)strlen(text), "");
        }
        write_numa(out, matrix, matrix->vertices[row]);
    }
}

static void write_vertices(struct ds_accel__text *out, const struct matrix *matrix)
{
    int width = id_width(matrix);

    for (size_t i = 0; i < matrix->count; i++) {
        const json_t *vertex = matrix->vertices[i];
        const json_t *interfaces = json_object_get(vertex, "interfaces");
        const char *name =
            ds_accel__json_string(vertex, i < matrix->device_count ? "name" : "kind");

        ds_accel__text_add(out, "%-*s%s", width, ds_accel__json_string(vertex, "id"),
                           name[0] != '\0' ? name : "-");
        for (size_t k = 0; k < json_array_size(interfaces); k++) {
            ds_accel__text_add(out, "%s%s", k == 0 ? ": " : " ",
                               json_string_value(json_array_get(interfaces, k)));
        }
        if (ds_accel__json_string(vertex, "pci_address")[0] != '\0') {
            ds_accel__text_add(out, ", %s", ds_accel__json_string(vertex, "pci_address"));
        }
        if (ds_accel__json_string(vertex, "uuid")[0] != '\0') {
            ds_accel__text_add(out, ", %s", ds_accel__json_string(vertex, "uuid"));
        }
        ds_accel__text_add(out, "\n");
    }
}

static void write_nodes(struct ds_accel__text *out, const struct matrix *matrix)
{
    const json_t *nodes = json_object_get(matrix->tree, "numa_nodes");

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const json_t *distances = json_object_get(node, "distances");

        ds_accel__text_add(
            out, "node %lld: CPUs %s", (long long)json_integer_value(json_object_get(node, "id")),
            ds_accel__json_string(node, "cpus")[0] != '\0' ? ds_accel__json_string(node, "cpus")
                                                           : "none");
        for (size_t k = 0; k < json_array_size(distances); k++) {
            ds_accel__text_add(out, "%s%lld", k == 0 ? ", distances " : " ",
                               (long long)json_integer_value(json_array_get(distances, k)));
        }
        ds_accel__text_add(out, "\n");
    }
}

/* Explain the codes that the matrix contains. */
static void write_legend(struct ds_accel__text *out, const struct matrix *matrix)
{
    bool has_grade[GRADE_COUNT] = {false};
    bool has_kind[ARRAY_SIZE(link_kinds)] = {false};

    for (size_t i = 0; i < matrix->count * matrix->count; i++) {
        size_t kind = 0;

        if (matrix->relations[i] == NULL) {
            continue;
        }
        if (shown_link(matrix->relations[i], &kind) != NULL) {
            has_kind[kind] = true;
        } else {
            has_grade[grade_of(matrix->relations[i])] = true;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(link_kinds); i++) {
        if (has_kind[i]) {
            ds_accel__text_add(out, "  %-6s%s, so many\n", link_kinds[i].code,
                               link_kinds[i].meaning);
        }
    }
    for (size_t i = 0; i < GRADE_COUNT; i++) {
        if (has_grade[i]) {
            ds_accel__text_add(out, "  %-6s%s\n", grades[i].code, grades[i].meaning);
        }
    }
}

static void write_unavailable(struct ds_accel__text *out, json_t *accelerators)
{
    for (size_t i = 0; i < json_array_size(accelerators); i++) {
        json_t *accelerator = json_array_get(accelerators, i);

        if (!json_is_true(json_object_get(accelerator, "available"))) {
            ds_accel__text_add(out, "%s: not available: %s%s%s\n",
                               ds_accel__json_string(accelerator, "name"),
                               ds_accel__json_string(accelerator, "reason"),
                               ds_accel__json_string(accelerator, "detail")[0] != '\0' ? ": " : "",
                               ds_accel__json_string(accelerator, "detail"));
        }
    }
}

void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour)
{
    struct matrix matrix;

    if (json_object_get(tree, "plan") != NULL) {
        ds_accel__topo_ranks_write(tree, out);
        write_unavailable(out, json_object_get(tree, "accelerators"));
        return;
    }
    if (!matrix_make(&matrix, tree)) {
        out->failed = true;
        return;
    }
    if (matrix.count > 0) {
        write_matrix(out, &matrix, has_colour);
        ds_accel__text_add(out, "\n");
        write_vertices(out, &matrix);
        ds_accel__text_add(out, "\n");
    }
    write_unavailable(out, json_object_get(tree, "accelerators"));
    write_nodes(out, &matrix);
    if (matrix.count > 1) {
        ds_accel__text_add(out, "\n");
        write_legend(out, &matrix);
    }
    matrix_clear(&matrix);
}

/* ---- picture -------------------------------------------------------------------------------- */

#define CELL_WIDTH 64.0
#define CELL_HEIGHT 28.0
#define LABEL_WIDTH 150.0
#define BOX_STEP 22.0
#define TOP 64.0
#define MARGIN 20.0

/* CSS classes: g0, g1, ... for the grades, and l for links. The background is left to the page. */
static const char style[] =
    "<style>\n"
    "text{font:12px sans-serif;fill:#222}.t{font-size:16px;font-weight:bold}.r{text-anchor:end}\n"
    ".c{text-anchor:middle;fill:#fff}rect{stroke:#fff;stroke-width:1}\n"
    ".n{fill:none;stroke:#888}.l{fill:#1b5e20}.g0,.g1,.g2{fill:#3b7d3a}.g3{fill:#0b6e99}\n"
    ".g4{fill:#9a6b00}.g5{fill:#a33b3b}.g6{fill:#777}.x{fill:#ccc}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.c{fill:#fff}rect{stroke:#111}.x{fill:#333}}"
    "\n"
    "</style>\n";

static void draw_cells(struct ds_accel__text *out, const struct matrix *matrix)
{
    for (size_t row = 0; row < matrix->count; row++) {
        double y = TOP + CELL_HEIGHT * (double)(row + 1);

        ds_accel__text_add(out, "<text class=\"r\" x=\"%.0f\" y=\"%.0f\">", LABEL_WIDTH - 8,
                           y + 18);
        ds_accel__xml_add(out, ds_accel__json_string(matrix->vertices[row], "id"));
        ds_accel__text_add(out, "</text>\n");
        for (size_t column = 0; column < matrix->count; column++) {
            const json_t *relation = matrix->relations[row * matrix->count + column];
            double x = LABEL_WIDTH + CELL_WIDTH * (double)column;
            char class[8] = "x";
            char text[32];
            size_t kind;

            if (relation != NULL && shown_link(relation, &kind) != NULL) {
                snprintf(class, sizeof(class), "l");
            } else if (relation != NULL) {
                snprintf(class, sizeof(class), "g%zu", grade_of(relation));
            }
            cell_text(matrix, row, column, text, sizeof(text));
            ds_accel__text_add(
                out,
                "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" "
                "height=\"%.0f\"/><text class=\"c\" x=\"%.0f\" y=\"%.0f\">%s</text>\n",
                class, x, y, CELL_WIDTH, CELL_HEIGHT, x + CELL_WIDTH / 2, y + 18, text);
        }
    }
    for (size_t column = 0; column < matrix->count; column++) {
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.0f\">",
                           LABEL_WIDTH + CELL_WIDTH * (double)column + 4, TOP + CELL_HEIGHT - 8);
        ds_accel__xml_add(out, ds_accel__json_string(matrix->vertices[column], "id"));
        ds_accel__text_add(out, "</text>\n");
    }
}

/* Draw a box with the vertices of a node, or if node is NULL with the vertices whose node is
 * unknown. Returns the y coordinate of the next box: y itself if no box was drawn. */
static double draw_node(struct ds_accel__text *out, const struct matrix *matrix, const json_t *node,
                        double y)
{
    const json_t *id = json_object_get(node, "id");
    double at = y + 20;
    size_t count = 0;

    for (size_t i = 0; i < matrix->count; i++) {
        const json_t *numa = json_object_get(matrix->vertices[i], "numa_node");

        if (node != NULL ? !json_equal(numa, id) : json_is_integer(numa)) {
            continue;
        }
        at += BOX_STEP;
        count++;
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.0f\">", MARGIN + 24, at);
        ds_accel__xml_add(out, ds_accel__json_string(matrix->vertices[i], "id"));
        ds_accel__text_add(out, "  ");
        ds_accel__xml_add(out, ds_accel__json_string(matrix->vertices[i], "name"));
        ds_accel__text_add(out, "  ");
        ds_accel__xml_add(out, ds_accel__json_string(matrix->vertices[i], "pci_address"));
        ds_accel__text_add(out, "</text>\n");
    }
    if (node == NULL && count == 0) {
        return y;
    }
    if (node != NULL) {
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.0f\">NUMA node %lld, CPUs ", MARGIN + 8,
                           y + 18, (long long)json_integer_value(id));
        ds_accel__xml_add(out, ds_accel__json_string(node, "cpus"));
    } else {
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.0f\">NUMA node not known", MARGIN + 8,
                           y + 18);
    }
    ds_accel__text_add(out,
                       "</text>\n<rect class=\"n\" x=\"%.0f\" y=\"%.0f\" width=\"560\" "
                       "height=\"%.0f\"/>\n",
                       MARGIN, y, at - y + 10);
    return at + 22;
}

static double draw_nodes(struct ds_accel__text *out, const struct matrix *matrix, double y)
{
    const json_t *nodes = json_object_get(matrix->tree, "numa_nodes");

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        y = draw_node(out, matrix, json_array_get(nodes, i), y);
    }
    return draw_node(out, matrix, NULL, y);
}

static double draw_legend(struct ds_accel__text *out, double y)
{
    for (size_t i = 0; i < GRADE_COUNT; i++, y += BOX_STEP) {
        ds_accel__text_add(out,
                           "<rect class=\"g%zu\" x=\"%.0f\" y=\"%.0f\" width=\"16\" "
                           "height=\"16\"/><text x=\"%.0f\" y=\"%.0f\">%s: %s</text>\n",
                           i, MARGIN, y, MARGIN + 24, y + 13, grades[i].code, grades[i].meaning);
    }
    ds_accel__text_add(
        out,
        "<rect class=\"l\" x=\"%.0f\" y=\"%.0f\" width=\"16\" height=\"16\"/>"
        "<text x=\"%.0f\" y=\"%.0f\">direct links between devices, with their number</text>\n",
        MARGIN, y, MARGIN + 24, y + 13);
    return y + BOX_STEP;
}

int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out)
{
    struct ds_accel__text body = {0};
    struct matrix matrix;
    double width;
    double height;

    if (json_object_get(tree, "plan") != NULL) {
        ds_accel__topo_ranks_svg(tree, out);
        return out->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (!matrix_make(&matrix, tree)) {
        return ds_accel__no_memory();
    }
    width = LABEL_WIDTH + CELL_WIDTH * (double)matrix.count + MARGIN;
    width = width > 640 ? width : 640;
    draw_cells(&body, &matrix);
    height = TOP + CELL_HEIGHT * (double)(matrix.count + 1) + 24;
    height = draw_nodes(&body, &matrix, height);
    height = draw_legend(&body, height + 8) + MARGIN;
    ds_accel__text_add(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                       "aria-labelledby=\"title desc\" width=\"%.0f\" height=\"%.0f\" "
                       "viewBox=\"0 0 %.0f %.0f\">\n<title id=\"title\">Topology</title>\n"
                       "<desc id=\"desc\">%zu devices, %zu network interfaces, %zu NUMA "
                       "nodes</desc>\n%s<text class=\"t\" x=\"%.0f\" y=\"26\">Topology</text>\n",
                       width, height, width, height, matrix.device_count,
                       matrix.count - matrix.device_count,
                       json_array_size(json_object_get(tree, "numa_nodes")), style, MARGIN);
    if (body.data != NULL) {
        ds_accel__text_add_bytes(out, body.data, body.size_bytes);
    }
    ds_accel__text_add(out, "</svg>\n");
    out->failed = out->failed || body.failed;
    ds_accel__text_clear(&body);
    matrix_clear(&matrix);
    return out->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}
