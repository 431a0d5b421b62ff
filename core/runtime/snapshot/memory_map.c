/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Snapshots as SVG. Each segment is a row. All rows have the same scale, so that areas are
 * proportional to sizes. In a row each block is a rectangle: grey if it is free, otherwise in the
 * colour of the segment's stream, which is paler for a block that is freed but still in use.
 * Adjacent blocks that are too narrow to be visible are drawn as one rectangle. Only the ROW_LIMIT
 * largest segments are drawn, so that the picture stays small for any snapshot. Below the rows,
 * each device with a trace (at most TIMELINE_LIMIT devices) has a chart of the allocated and
 * reserved bytes over time.
 *
 * A trace may begin at any time in the life of a process. The state before the trace is computed
 * from the final state, which the segments show, minus all changes of the trace.
 *
 * The picture has no background of its own; its style sheet has colours for light and for dark
 * pages.
 */
#include "base/json.h"
#include "base/text.h"
#include "runtime/oom.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 250.0   /* x position where the rows begin, after their labels */
#define PLOT 960.0   /* width of the largest segment */
#define WIDTH 1300.0 /* width of the picture */
#define TOP 96.0     /* y position of the first row */
#define ROW_HEIGHT 18.0
#define ROW_STEP 24.0
#define ROW_LIMIT 256
#define RECTANGLE_LIMIT 20000.0
#define COLUMN_COUNT 960 /* number of columns of a timeline */
#define TIMELINE_HEIGHT 160.0
#define TIMELINE_STEP 220.0
#define TIMELINE_LIMIT 16
#define STREAM_COLOURS 7 /* the last colour is for all further streams */

static const char style[] =
    "<style>\n"
    "text{font:12px sans-serif;fill:#222}.t{font-size:16px;font-weight:bold}\n"
    ".r{text-anchor:end}.i{fill:#fff;font-size:11px;text-anchor:middle}\n"
    "rect,path{stroke:#fff;stroke-width:.4}.f{fill:#e4e4e4}.m{fill:#9a9a9a}.o{fill:none;"
    "stroke:#888;stroke-width:1}\n"
    ".p{fill-opacity:.45}.s0{fill:#0b6e99}.s1{fill:#b3541e}.s2{fill:#3b7d3a}.s3{fill:#7a4fa3}\n"
    ".s4{fill:#a33b5f}.s5{fill:#6b6b1f}.s6{fill:#4a5a6a}\n"
    ".a{fill:#0b6e99;fill-opacity:.6;stroke:none}.v{fill:#bdbdbd;stroke:none}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.i{fill:#fff}rect,path{stroke:#111}\n"
    ".f{fill:#3a3a3a}.m{fill:#777}.v{fill:#555}}\n"
    "</style>\n";

struct map {
    json_t *tree;
    struct ds_accel__text *out;
    struct ds_accel__memory_sums sums;
    json_t **rows; /* the segments that are drawn, sorted by device and address; borrowed */
    size_t row_count;
    struct ds_accel__memory_sums rest; /* sums over the segments that are not drawn */
    json_int_t streams[STREAM_COLOURS];
    size_t stream_count;
    double bytes_per_unit;
    double least_width; /* narrower blocks are drawn together with their neighbours */
    bool has_pending, has_run;
};

/* ---- texts ---------------------------------------------------------------------------------- */

static json_int_t get_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* ---- drawing -------------------------------------------------------------------------------- */

static int compare_sizes(const void *a, const void *b)
{
    json_int_t left = get_number(*(json_t *const *)a, "total_size");
    json_int_t right = get_number(*(json_t *const *)b, "total_size");

    return left > right ? -1 : left < right;
}

static int compare_places(const void *a, const void *b)
{
    const json_t *left = *(json_t *const *)a;
    const json_t *right = *(json_t *const *)b;
    json_int_t difference = get_number(left, "device") - get_number(right, "device");

    if (difference == 0) {
        difference = get_number(left, "address") - get_number(right, "address");
    }
    return difference < 0 ? -1 : difference > 0;
}

/* Return the colour of a stream. The first STREAM_COLOURS - 1 streams that the function sees get
 * different colours; all further streams share the last colour. */
static size_t colour_of(struct map *map, json_int_t stream)
{
    for (size_t i = 0; i < map->stream_count; i++) {
        if (map->streams[i] == stream) {
            return i;
        }
    }
    if (map->stream_count < STREAM_COLOURS - 1) {
        map->streams[map->stream_count++] = stream;
        return map->stream_count - 1;
    }
    return STREAM_COLOURS - 1;
}

static int32_t choose_rows(struct map *map)
{
    json_t *segments = json_object_get(map->tree, "segments");
    size_t count = json_array_size(segments);
    double largest = 1;

    map->rows = calloc(count + 1, sizeof(*map->rows));
    if (map->rows == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < count; i++) {
        map->rows[i] = json_array_get(segments, i);
        ds_accel__memory_sum(map->rows[i], &map->sums);
    }
    qsort(map->rows, count, sizeof(*map->rows), compare_sizes);
    map->row_count = count < ROW_LIMIT ? count : ROW_LIMIT;
    for (size_t i = map->row_count; i < count; i++) {
        ds_accel__memory_sum(map->rows[i], &map->rest);
    }
    if (count > 0 && ds_accel__json_size(map->rows[0], "total_size") > 0) {
        largest = (double)ds_accel__json_size(map->rows[0], "total_size");
    }
    map->bytes_per_unit = largest / PLOT;
    /* With this width at most RECTANGLE_LIMIT / 2 blocks get their own rectangle, and about as many
     * rectangles of combined blocks can lie between them. */
    map->least_width = 2 * PLOT * (double)map->row_count / RECTANGLE_LIMIT;
    map->least_width = map->least_width < 1 ? 1 : map->least_width;
    qsort(map->rows, map->row_count, sizeof(*map->rows), compare_places);
    for (size_t i = 0; i < map->row_count; i++) {
        colour_of(map, get_number(map->rows[i], "stream"));
    }
    return DS_ACCEL_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Adjacent blocks that are drawn as one rectangle. */
struct run {
    double from;
    uint64_t bytes;
    size_t count;
    struct ds_accel__memory_sums sums;
    const json_t *block; /* the block, if the run has only one */
};

static void add_frame(struct map *map, const json_t *block)
{
    const json_t *frame = json_array_get(json_object_get(block, "frames"), 0);
    const char *name = json_string_value(json_object_get(frame, "name"));
    const char *file = json_string_value(json_object_get(frame, "filename"));

    if (name != NULL && name[0] != '\0') {
        ds_accel__text_add(map->out, "\n");
        ds_accel__xml_add(map->out, name);
    }
    if (file != NULL && file[0] != '\0') {
        ds_accel__text_add(map->out, " (");
        ds_accel__xml_add(map->out, file);
        ds_accel__text_add(map->out, ":%lld)", (long long)get_number(frame, "line"));
    }
}

static void draw_block(struct map *map, const json_t *segment, const struct run *run, double y)
{
    static const char *const states[] = {"free", "freed, still in use by a stream", "allocated"};
    enum ds_accel__piece_state state = ds_accel__piece_state(run->block);
    size_t colour = colour_of(map, get_number(segment, "stream"));
    double width = (double)run->bytes / map->bytes_per_unit;
    char classes[32] = "f";
    char size[32];
    char requested[32];

    if (state != DS_ACCEL__PIECE_FREE) {
        snprintf(classes, sizeof(classes), "s%zu%s", colour,
                 state == DS_ACCEL__PIECE_PENDING ? " p" : "");
    }
    map->has_pending = map->has_pending || state == DS_ACCEL__PIECE_PENDING;
    ds_accel__size_text(run->bytes, size, sizeof(size));
    ds_accel__size_text(ds_accel__json_size(run->block, "requested_size"), requested,
                        sizeof(requested));
    ds_accel__text_add(map->out,
                       "<rect class=\"%s\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\">"
                       "<title>0x%llx: %s %s",
                       classes, run->from, y, width, ROW_HEIGHT,
                       (unsigned long long)ds_accel__json_size(run->block, "address"), size,
                       states[state]);
    if (state != DS_ACCEL__PIECE_FREE) {
        ds_accel__text_add(map->out, ", %s requested, stream %lld", requested,
                           (long long)get_number(segment, "stream"));
        add_frame(map, run->block);
    }
    ds_accel__text_add(map->out, "</title></rect>\n");
    if (state != DS_ACCEL__PIECE_FREE && width >= 56) {
        ds_accel__text_add(map->out, "<text class=\"i\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                           run->from + width / 2, y + 13, size);
    }
}

/* Write the current run, if it has blocks, and begin a new run after it. */
static void end_run(struct map *map, const json_t *segment, struct run *run, double y)
{
    double width = (double)run->bytes / map->bytes_per_unit;
    char size[32];
    char used[32];

    if (run->count == 1) {
        draw_block(map, segment, run, y);
    } else if (run->count > 1) {
        map->has_run = true;
        ds_accel__size_text(run->bytes, size, sizeof(size));
        ds_accel__size_text(run->bytes - run->sums.free_bytes, used, sizeof(used));
        ds_accel__text_add(map->out,
                           "<rect class=\"m\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" "
                           "height=\"%.1f\"><title>%zu blocks, %s, of which %s in use</title>"
                           "</rect>\n",
                           run->from, y, width, ROW_HEIGHT, run->count, size, used);
    }
    *run = (struct run){.from = run->from + width};
}

static void draw_blocks(struct map *map, const json_t *segment, double y)
{
    const json_t *blocks = json_object_get(segment, "blocks");
    struct run run = {.from = LEFT};

    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        uint64_t size = ds_accel__json_size(block, "size");
        bool is_wide = (double)size / map->bytes_per_unit >= map->least_width;

        if (is_wide) {
            end_run(map, segment, &run, y);
        }
        run.block = block;
        run.bytes += size;
        run.count++;
        if (ds_accel__piece_state(block) == DS_ACCEL__PIECE_FREE) {
            run.sums.free_bytes += size;
        }
        if (is_wide || (double)run.bytes / map->bytes_per_unit >= map->least_width) {
            end_run(map, segment, &run, y);
        }
    }
    end_run(map, segment, &run, y);
}

static void draw_row(struct map *map, const json_t *segment, double y)
{
    const char *type = json_string_value(json_object_get(segment, "segment_type"));
    double width = (double)ds_accel__json_size(segment, "total_size") / map->bytes_per_unit;
    struct ds_accel__memory_sums sums = {0};
    char size[32];
    char used[32];

    ds_accel__memory_sum(segment, &sums);
    ds_accel__size_text(sums.reserved_bytes, size, sizeof(size));
    ds_accel__size_text(sums.allocated_bytes, used, sizeof(used));
    ds_accel__text_add(
        map->out, "<g><text class=\"r\" x=\"%.0f\" y=\"%.1f\">device %lld, 0x%llx, %s</text>\n",
        LEFT - 8, y + 13, (long long)get_number(segment, "device"),
        (unsigned long long)ds_accel__json_size(segment, "address"), size);
    draw_blocks(map, segment, y);
    ds_accel__text_add(
        map->out,
        "<rect class=\"o\" x=\"%.1f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\">"
        "<title>%s segment, stream %lld%s: %s, %s allocated</title></rect></g>\n",
        LEFT, y, width, ROW_HEIGHT, type != NULL && strcmp(type, "small") == 0 ? "small" : "large",
        (long long)get_number(segment, "stream"),
        json_is_true(json_object_get(segment, "is_expandable")) ? ", growable" : "", size, used);
}

static void draw_key(struct map *map, double *x, const char *classes, const char *name)
{
    ds_accel__text_add(map->out,
                       "<rect class=\"%s\" x=\"%.0f\" y=\"60\" width=\"14\" height=\"14\"/>"
                       "<text x=\"%.0f\" y=\"72\">%s</text>\n",
                       classes, *x, *x + 19, name);
    *x += 19 + 7.0 * (double)strlen(name) + 20;
}

static void draw_legend(struct map *map)
{
    double x = 20;
    char classes[32];
    char name[48];

    ds_accel__text_add(map->out, "<g>\n");
    for (size_t i = 0; i < map->stream_count; i++) {
        snprintf(classes, sizeof(classes), "s%zu", i);
        snprintf(name, sizeof(name), "stream %lld", (long long)map->streams[i]);
        draw_key(map, &x, classes, name);
    }
    if (map->stream_count == STREAM_COLOURS - 1) {
        draw_key(map, &x, "s6", "other streams");
    }
    draw_key(map, &x, "f", "free");
    if (map->has_pending) {
        draw_key(map, &x, "s0 p", "freed, still in use by a stream");
    }
    if (map->has_run) {
        draw_key(map, &x, "m", "many small blocks");
    }
    ds_accel__text_add(map->out, "</g>\n");
}

/* ---- timelines ------------------------------------------------------------------------------ */

/*
 * The bytes at the current event, and their maximum in each column of the picture. The type is
 * double because a sum of sizes in a trace may exceed 64 bits.
 */
struct level {
    double now;
    double least; /* minimum of now in the first pass, which begins at 0 */
    double peaks[COLUMN_COUNT];
};

static void change(struct level *level, double bytes, size_t column)
{
    level->now += bytes;
    level->least = level->now < level->least ? level->now : level->least;
    if (level->now > level->peaks[column]) {
        level->peaks[column] = level->now;
    }
}

/* Return how an event changes the allocated and the reserved bytes: by its size, or not at all. */
static void weigh(const json_t *event, double *allocated_out, double *reserved_out)
{
    const char *action = json_string_value(json_object_get(event, "action"));
    double size = (double)ds_accel__json_size(event, "size");

    *allocated_out = 0;
    *reserved_out = 0;
    if (action == NULL) {
        return;
    }
    if (strcmp(action, "alloc") == 0) {
        *allocated_out = size;
    } else if (strcmp(action, "free_requested") == 0) {
        *allocated_out = -size;
    } else if (strcmp(action, "segment_alloc") == 0 || strcmp(action, "segment_map") == 0) {
        *reserved_out = size;
    } else if (strcmp(action, "segment_free") == 0 || strcmp(action, "segment_unmap") == 0) {
        *reserved_out = -size;
    }
}

/* Return the column of an event: from its time if the last event is later than the first, else from
 * its position in the trace. */
static size_t column_of(const json_t *trace, size_t position)
{
    size_t count = json_array_size(trace);
    json_int_t first = get_number(json_array_get(trace, 0), "time_us");
    json_int_t last = get_number(json_array_get(trace, count - 1), "time_us");
    json_int_t now = get_number(json_array_get(trace, position), "time_us");
    double at = (double)position / (double)count;

    if (last > first) {
        now = now < first ? first : now > last ? last : now;
        at = (double)(now - first) / ((double)(last - first) + 1);
    }
    return (size_t)(at * COLUMN_COUNT);
}

/* Compute both levels over the trace. The first pass begins at 0: the difference between its result
 * and the final state is the state before the trace. The second pass begins with that state, or
 * with a higher one if a level would otherwise fall below 0. */
static void follow(const json_t *trace, const struct ds_accel__memory_sums *end,
                   struct level *allocated, struct level *reserved)
{
    for (int pass = 0; pass < 2; pass++) {
        double first[2] = {0, 0};
        size_t filled = 0;

        if (pass == 1) {
            first[0] = (double)end->allocated_bytes - allocated->now;
            first[1] = (double)end->reserved_bytes - reserved->now;
            first[0] = first[0] < -allocated->least ? -allocated->least : first[0];
            first[1] = first[1] < -reserved->least ? -reserved->least : first[1];
        }
        *allocated = (struct level){.now = first[0]};
        *reserved = (struct level){.now = first[1]};
        for (size_t i = 0; i < json_array_size(trace); i++) {
            size_t column = column_of(trace, i);
            double a;
            double r;

            for (; filled <= column; filled++) { /* columns without an event */
                change(allocated, 0, filled);
                change(reserved, 0, filled);
            }
            weigh(json_array_get(trace, i), &a, &r);
            change(allocated, a, column);
            change(reserved, r, column);
        }
        for (; filled < COLUMN_COUNT; filled++) {
            change(allocated, 0, filled);
            change(reserved, 0, filled);
        }
    }
}

static void draw_area(struct map *map, const char *classes, const struct level *level, double most,
                      double y)
{
    double bottom = y + TIMELINE_HEIGHT;

    ds_accel__text_add(map->out, "<path class=\"%s\" d=\"M%.1f %.1f", classes, LEFT, bottom);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        double height = level->peaks[i] / most * TIMELINE_HEIGHT;

        if (i == 0 || level->peaks[i] != level->peaks[i - 1]) {
            ds_accel__text_add(map->out, "H%.1fV%.1f", LEFT + (double)i, bottom - height);
        }
    }
    ds_accel__text_add(map->out, "H%.1fV%.1fZ\"/>\n", LEFT + PLOT, bottom);
}

/* Limit a size to the range that the text functions support. */
static uint64_t to_bytes(double bytes)
{
    return bytes < 0x1p63 ? (uint64_t)bytes : UINT64_C(1) << 63;
}

static double peak_of(const struct level *level)
{
    double peak = 0;

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        peak = level->peaks[i] > peak ? level->peaks[i] : peak;
    }
    return peak;
}

static int32_t draw_timeline(struct map *map, size_t device, const json_t *trace, double y)
{
    struct ds_accel__memory_sums end = {0};
    /* levels[0]: allocated bytes; levels[1]: reserved bytes */
    struct level *levels = calloc(2, sizeof(*levels));
    double peaks[2];
    double most;
    char texts[2][32];

    if (levels == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < json_array_size(json_object_get(map->tree, "segments")); i++) {
        const json_t *segment = json_array_get(json_object_get(map->tree, "segments"), i);

        if ((size_t)get_number(segment, "device") == device) {
            ds_accel__memory_sum(segment, &end);
        }
    }
    follow(trace, &end, &levels[0], &levels[1]);
    for (size_t i = 0; i < 2; i++) {
        peaks[i] = peak_of(&levels[i]);
        ds_accel__size_text(to_bytes(peaks[i]), texts[i], sizeof(texts[i]));
    }
    most = peaks[0] > peaks[1] ? peaks[0] : peaks[1];
    most = most > 0 ? most : 1;
    ds_accel__text_add(
        map->out,
        "<g><title>device %zu over time: at most %s allocated, %s reserved</title>\n"
        "<text x=\"%.0f\" y=\"%.1f\">device %zu over %zu event%s: at most %s allocated, "
        "%s reserved</text>\n",
        device, texts[0], texts[1], LEFT, y - 8, device, json_array_size(trace),
        json_array_size(trace) == 1 ? "" : "s", texts[0], texts[1]);
    draw_area(map, "v", &levels[1], most, y);
    draw_area(map, "a", &levels[0], most, y);
    ds_accel__text_add(map->out, "</g>\n");
    free(levels);
    return DS_ACCEL_OK;
}

static int32_t draw_timelines(struct map *map, double y)
{
    const json_t *traces = json_object_get(map->tree, "device_traces");
    size_t drawn = 0;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(traces) && drawn < TIMELINE_LIMIT && status >= 0; i++) {
        if (json_array_size(json_array_get(traces, i)) > 0) {
            status =
                draw_timeline(map, i, json_array_get(traces, i), y + (double)drawn * TIMELINE_STEP);
            drawn++;
        }
    }
    return status;
}

static size_t count_timelines(const json_t *tree)
{
    const json_t *traces = json_object_get(tree, "device_traces");
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(traces) && count < TIMELINE_LIMIT; i++) {
        count += json_array_size(json_array_get(traces, i)) > 0;
    }
    return count;
}

/* ---- the whole picture ---------------------------------------------------------------------- */

static void draw_head(struct map *map, double height)
{
    const char *backend = json_string_value(json_object_get(map->tree, "backend"));
    char reserved[32];
    char allocated[32];
    char largest[32];

    ds_accel__size_text(map->sums.reserved_bytes, reserved, sizeof(reserved));
    ds_accel__size_text(map->sums.allocated_bytes, allocated, sizeof(allocated));
    ds_accel__size_text(map->sums.largest_free_bytes, largest, sizeof(largest));
    ds_accel__text_add(map->out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                       "aria-labelledby=\"title desc\" width=\"%.0f\" height=\"%.0f\" "
                       "viewBox=\"0 0 %.0f %.0f\">\n<title id=\"title\">Memory map",
                       WIDTH, height, WIDTH, height);
    if (backend != NULL && backend[0] != '\0') {
        ds_accel__text_add(map->out, " of ");
        ds_accel__xml_add(map->out, backend);
    }
    ds_accel__text_add(map->out,
                       "</title>\n<desc id=\"desc\">%zu segments with %zu blocks: %s reserved, %s "
                       "allocated; largest free block %s, fragmentation %u %%</desc>\n%s",
                       map->sums.segment_count, map->sums.block_count, reserved, allocated, largest,
                       ds_accel__fragmentation_percent(&map->sums), style);
    ds_accel__text_add(map->out, "<text class=\"t\" x=\"20\" y=\"26\">Memory map");
    if (backend != NULL && backend[0] != '\0') {
        ds_accel__text_add(map->out, " of ");
        ds_accel__xml_add(map->out, backend);
    }
    ds_accel__text_add(map->out,
                       "</text>\n<text x=\"20\" y=\"46\">%s reserved, %s allocated; largest free "
                       "block %s, fragmentation %u %%</text>\n",
                       reserved, allocated, largest, ds_accel__fragmentation_percent(&map->sums));
}

int32_t ds_accel__memory_map_svg(json_t *tree, struct ds_accel__text *out)
{
    struct map map = {.tree = tree, .out = out};
    int32_t status = choose_rows(&map);
    double y = TOP;
    double timelines;

    if (status < 0) {
        return status;
    }
    timelines = TOP + ROW_STEP * (double)(map.row_count + 1) + 40;
    draw_head(&map, timelines + TIMELINE_STEP * (double)count_timelines(tree));
    for (size_t i = 0; i < map.row_count; i++, y += ROW_STEP) {
        draw_row(&map, map.rows[i], y);
    }
    if (map.rest.segment_count > 0) {
        char size[32];

        ds_accel__size_text(map.rest.reserved_bytes, size, sizeof(size));
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.1f\">and %zu smaller segments, %s</text>\n",
                           LEFT, y + 13, map.rest.segment_count, size);
    } else if (map.row_count == 0) {
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.1f\">no segment</text>\n", LEFT, y + 13);
    }
    draw_legend(&map);
    status = draw_timelines(&map, timelines);
    ds_accel__text_add(out, "</svg>\n");
    free(map.rows);
    return status >= 0 && out->failed ? ds_accel__no_memory() : status;
}
