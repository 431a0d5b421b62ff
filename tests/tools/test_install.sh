#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Install; compile a program and a plugin outside the tree with pkg-config alone, and run them;
# follow the installed rules as a vendor would; uninstall, which must leave no file.
# test_install.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

prefix=$dir/prefix
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"

# Use a separate build directory, because one object contains the prefix. The other objects are
# reused.
mkdir -p "$dir/build/obj"
cp -a "$build/obj/core" "$build/obj/tools" "$build/obj/plugins" "$build/obj/ops" "$build/obj/settings" "$dir/build/obj"
make -C "$source" BUILD="$dir/build" "$dir/build/obj/settings" >/dev/null
touch -r "$build/obj/settings" "$dir/build/obj/settings" # prevents a rebuild for other warnings
run make -C "$source" install BUILD="$dir/build" PREFIX="$prefix" NO_DEPS=1
is "make install" 0 "$code"
[ "$code" = 0 ] || printf '%s\n' "$out" "$err"
is "what is compiled again for another prefix" "core/config/prefix.c" \
    "$(printf '%s\n' "$out" | sed -n 's/.* -c .* \([a-z_/]*\.c\)$/\1/p' | paste -sd ' ' -)"

cat >"$dir/consumer.c" <<'END'
#include <ds-accel/ds_accel.h>
#include <stdio.h>

int main(void)
{
    ds_accel_t *accelerator = ds_accel_get();
    ds_accel_device_t *device;
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};

    if (accelerator == NULL) {
        fprintf(stderr, "%s\n", ds_accel_last_error());
        return 1;
    }
    puts(ds_accel_name(accelerator));
    if (ds_accel_device_open(accelerator, 0, &device) < 0 ||
        ds_accel_device_memory(device, &memory) < 0 || memory.total_bytes == 0) {
        return 1;
    }
    ds_accel_device_close(device);
    return 0;
}
END
cp "$dir/consumer.c" "$dir/consumer.cc"
sed -i 's/= {.struct_size = sizeof(memory)}/= {}; memory.struct_size = sizeof(memory)/' "$dir/consumer.cc"
cat >"$dir/vendor.c" <<'END'
#include <ds-accel/plugin-api.h>
#include <stdio.h>

static int32_t probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict_out,
                     struct ds_accel_error *error)
{
    struct ds_accel_verdict verdict;

    (void)host;
    (void)error;
    memset(&verdict, 0, sizeof(verdict));
    verdict.state = DS_ACCEL_PROBE_UNAVAILABLE;
    verdict.reason = DS_ACCEL_REASON_NO_DRIVER;
    snprintf(verdict.detail, sizeof(verdict.detail), "vendor.ko is not loaded");
    ds_accel_write(verdict_out, &verdict, sizeof(verdict));
    return DS_ACCEL_OK;
}

static int32_t fail(void)
{
    return DS_ACCEL_ERR_NO_DEVICE;
}

static void fill(struct ds_accel_plugin *table)
{
    table->probe = probe;
    table->init = (int32_t (*)(const struct ds_accel_host *, ds_accel_plugin_instance_t **,
                               struct ds_accel_error *))fail;
    table->shutdown = (void (*)(ds_accel_plugin_instance_t *))fail;
    table->device_count = (int32_t (*)(ds_accel_plugin_instance_t *, uint32_t *,
                                       struct ds_accel_error *))fail;
    table->device_open =
        (int32_t (*)(ds_accel_plugin_instance_t *, uint32_t, ds_accel_plugin_device_t **,
                     struct ds_accel_error *))fail;
    table->device_close = (void (*)(ds_accel_plugin_device_t *))fail;
}

DS_ACCEL_PLUGIN("vendor", "A Vendor", "3.2.1", 0, 0, fill);
END

is "abi" 1.1 "$(pkg-config --variable=abi ds-accel)"
plugindir=$(pkg-config --variable=plugindir ds-accel)
is "plugindir" "$prefix/lib/ds-accel" "$plugindir"
# shellcheck disable=SC2046 # flags are words
run gcc -std=c11 -Wall -Wextra -Werror -o "$dir/consumer" "$dir/consumer.c" \
    $(pkg-config --cflags --libs ds-accel) "-Wl,-rpath,$prefix/lib"
is "a C program compiles" "0 " "$code $err"
# shellcheck disable=SC2046
run g++ -std=c++11 -Wall -Wextra -Werror -o "$dir/consumer_cc" "$dir/consumer.cc" \
    $(pkg-config --cflags --libs ds-accel) "-Wl,-rpath,$prefix/lib"
is "a C++ program compiles" "0 " "$code $err"
# A program uses an op from the installed files alone: two steps of Adam for three parameters.
cat >"$dir/op.c" <<'END'
#include <ds-accel/ops/cpu_adam.h>
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    float parameter[3] = {1, 2, 3};
    float gradient[3] = {0.5f, -0.5f, 0};
    float m[3] = {0};
    float v[3] = {0};
    struct ds_accel_optimizer_tensor tensor = {0};
    struct ds_accel_cpu_adam_options options = {0};
    struct ds_accel_error error = {0};
    const struct ds_accel_cpu_adam *adam;
    ds_accel_op_entry_v1_fn entry;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
    adam = (const struct ds_accel_cpu_adam *)entry();
    tensor.count = 3;
    tensor.parameter = parameter;
    tensor.gradient = gradient;
    tensor.state[0] = m;
    tensor.state[1] = v;
    tensor.parameter_dtype = tensor.gradient_dtype = tensor.state_dtype = DS_ACCEL_DTYPE_FLOAT32;
    options.common.struct_size = sizeof(options);
    options.common.tensors = &tensor;
    options.common.tensor_count = 1;
    options.common.tensor_bytes = sizeof(tensor);
    options.common.learning_rate = 0.1;
    options.common.gradient_scale = 1;
    options.beta1 = 0.9;
    options.beta2 = 0.999;
    options.epsilon = 1e-8;
    error.struct_size = sizeof(error);
    for (options.common.step = 1; options.common.step <= 2; options.common.step++) {
        if (adam->step(&options, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    }
    printf("%s %.4f %.4f %.4f\n", adam->op.name, parameter[0], parameter[1], parameter[2]);
    return 0;
}
END
# shellcheck disable=SC2046
run gcc -std=c11 -Wall -Wextra -Werror -o "$dir/op" "$dir/op.c" $(pkg-config --cflags ds-accel) -ldl
is "a program that uses an op compiles" "0 " "$code $err"
run "$dir/op" "$plugindir/ops/cpu_adam.so"
is "a program uses an op" "0 cpu_adam 0.8000 2.2000 3.0000" "$code $out"
run "$dir/consumer"
is "the C program runs" "0 cpu" "$code $out"
run "$dir/consumer_cc"
is "the C++ program runs" "0 cpu" "$code $out"

cat >"$dir/tool.c" <<'END'
#include <ds-accel/ds_accel_tools.h>
#include <stdio.h>

int main(void)
{
    char *text;

    if (ds_accel_report(ds_accel_get(), DS_ACCEL_REPORT_DETECT, NULL, 0, &text) < 0) {
        fprintf(stderr, "%s\n", ds_accel_last_error());
        return 1;
    }
    fputs(text, stdout);
    ds_accel_free_text(text);
    return ds_accel_lint(NULL, "/nowhere", 0, &text) != DS_ACCEL_ERR_IO;
}
END
# shellcheck disable=SC2046
run gcc -std=c11 -Wall -Wextra -Werror -o "$dir/tool" "$dir/tool.c" \
    $(pkg-config --cflags --libs ds-accel-tools) "-Wl,-rpath,$prefix/lib"
is "a program with the tools compiles" "0 " "$code $err"
run "$dir/tool"
is "the program with the tools runs" "0 cpu" "$code $out"

# shellcheck disable=SC2046
run gcc -std=c99 -Wall -fPIC -shared -fvisibility=hidden -Wl,-z,defs,-z,now,-z,nodelete \
    $(pkg-config --cflags ds-accel) -o "$plugindir/ds_accel_vendor.so" "$dir/vendor.c"
is "a vendor's plugin compiles" 0 "$code"
run "$prefix/bin/ds-accel" list
has "the plugin is listed" "$out" "vendor  unavailable"
has "with its version" "$out" "3.2.1"
has "with its reason" "$out" "no_driver: vendor.ko is not loaded"
run "$prefix/bin/ds-accel" lint "$plugindir/ds_accel_vendor.so"
is "it passes lint" 0 "$code"
run "$dir/consumer"
is "the program still gets cpu" "0 cpu" "$code $out"
rm "$plugindir/ds_accel_vendor.so"

# ---- the kit for vendors -------------------------------------------------------------------------

# fence FILE HEADING: print the first block of commands below a heading.
fence() {
    awk -v heading="$2" '$0 == heading { below = 1 } below && /^```/ { if (on) exit; on = /^```sh$/; next } on' "$1"
}

# paste_in NAME DIRECTORY COMMANDS: check that the commands work when pasted into a shell in
# DIRECTORY.
paste_in() {
    mkdir -p "$2"
    printf '%s\n' "$3" >"$dir/pasted"
    run env -C "$2" PATH="$prefix/bin:$PATH" sh -eux "$dir/pasted"
    is "$1: $err" 0 "$code"
}

docdir=$(pkg-config --variable=docdir ds-accel)
exampledir=$(pkg-config --variable=exampledir ds-accel)
is "docdir" "$prefix/share/doc/ds-accel" "$docdir"
is "exampledir" "$prefix/share/doc/ds-accel/example" "$exampledir"
is "bindir" "$prefix/bin" "$(pkg-config --variable=bindir ds-accel)"
is "what is installed names no file of the source tree's docs" "" \
    "$(grep -rlE '(^|[^/a-z])docs/' "$prefix/include" "$prefix/share/man" "$exampledir" || true)"
is "the rules" same "$(cmp -s "$source/docs/plugin-abi.md" "$docdir/plugin-abi.md" && echo same)"
for name in docdir exampledir plugindir conformance lint; do
    has "ds-accel-plugin(7) names $name" "$(cat "$prefix/share/man/man7/ds-accel-plugin.7")" "$name"
done

# The program of README, and the commands below it.
mkdir "$dir/hello"
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" >"$dir/hello/hello.c"
hello=$(sed -n '/^    cc hello\.c /,/^$/p' "$source/README.md")
has "README has a program" "$hello" "pkg-config --cflags --libs ds-accel)"
paste_in "README's program" "$dir/hello" "$hello"
is "README's program says" cpu "$out"

readme=$(fence "$source/README.md" "## A plugin in five minutes")
has "README has commands" "$readme" 'exampledir ds-accel)"/* .'
paste_in "README's commands" "$dir/five" "$readme"
has "README: lint" "$out" "DSA-P13"
has "README: conformance" "$out" " 0 failed"
has "README: list" "$out" "example  available"
has "README: info" "$out" "example: available"
run "$prefix/bin/ds-accel" -a example detect
is "README: it is installed" "0 example" "$code $out"
suite=$(fence "$docdir/plugin-abi.md" "## Conformance")
has "the rules have commands of conformance" "$suite" "conformance example "
paste_in "the rules' commands of conformance" "$dir/five" "$suite"
rm "$plugindir/ds_accel_example.so"

rules=$(fence "$docdir/plugin-abi.md" "## A complete plugin")
mkdir "$dir/rules"
awk '/^```/ { if (on) exit; on = $0 == "```c"; next } on' "$docdir/plugin-abi.md" >"$dir/rules/example.c"
paste_in "the rules' commands" "$dir/rules" "$rules"
has "rules: detect" "$out" "example"

page=$(sed -n '/^\.Sh BUILDING/,/^\.Sh PACKAGING/p' "$prefix/share/man/man7/ds-accel-plugin.7" |
    awk '/^\.Bd -literal/ { on = 1; next } /^\.Ed/ { on = 0 } on' | sed 's/\\e$/\\/')
has "ds-accel-plugin(7) has commands" "$page" "make check"
paste_in "ds-accel-plugin(7)'s commands" "$dir/page" "$page"
has "ds-accel-plugin(7): info" "$out" "example: available"

# Another plugin, in a directory of another name, uses the same Makefile; it is also built as C++.
mkdir "$dir/mine"
cp "$exampledir/Makefile" "$exampledir/plugin.map" "$dir/mine"
sed 's/"example"/"mine"/; s/Example Vendor/My Vendor/' "$exampledir/example.c" >"$dir/mine/mine.c"
run make -C "$dir/mine" NAME=mine
is "make of one's own: $err" 0 "$code"
run make -C "$dir/mine" NAME=mine check
is "make check of one's own: $out $err" 0 "$code"
run make -C "$dir/mine" NAME=mine install DESTDIR="$dir/root"
is "make install into DESTDIR" "0 $dir/root$plugindir/ds_accel_mine.so" "$code $(ls "$dir/root$plugindir"/*.so)"
run env PKG_CONFIG_PATH="$dir" make -C "$dir/mine" NAME=mine install DESTDIR="$dir/root"
is "make install without ds-accel" 2 "$code"
has "make install without ds-accel" "$err" "pkg-config finds no ds-accel"
run make -C "$dir/mine" NAME=mine clean
is "make clean" "Makefile mine.c plugin.map" "$(cd "$dir/mine" && echo *)"

# The build directory is an installation prefix too, also for pkg-config, and can be moved.
run env PKG_CONFIG_PATH="$build/lib/pkgconfig" pkg-config --variable=plugindir ds-accel
is "the build directory's plugindir" "$(cd "$build/lib/ds-accel" && pwd -P)" "$(cd "$out" && pwd -P)"
# shellcheck disable=SC2046
run gcc -Wall -Wextra -Werror -o "$dir/consumer_build" "$dir/consumer.c" \
    $(PKG_CONFIG_PATH="$build/lib/pkgconfig" pkg-config --cflags --libs ds-accel)
is "a program compiles against the build directory" "0 " "$code $err"
run env LD_LIBRARY_PATH="$build/lib" "$dir/consumer_build"
is "and runs" 0 "$code"
mkdir "$dir/five_build"
# shellcheck disable=SC2016 # expanded by the inner shell
run env -C "$dir/five_build" PKG_CONFIG_PATH="$build/lib/pkgconfig" sh -euc \
    'cp $(pkg-config --variable=exampledir ds-accel)/* . && make check'
is "the example of the build directory: $err" 0 "$code"

for file in man/man1/ds-accel.1 man/man1/ds-accel-run.1 man/man5/ds-accel.json.5 man/man7/ds-accel-plugin.7 \
    man/man7/ds-accel-reasons.7 doc/ds-accel/plugin-abi.md doc/ds-accel/example/example.c \
    doc/ds-accel/example/Makefile doc/ds-accel/example/plugin.map bash-completion/completions/ds-accel zsh/site-functions/_ds-accel; do
    run cmp "$build/share/$file" "$prefix/share/$file"
    is "$file is installed" "0 " "$code $out$err"
done
# Without /proc the installation is found at the prefix of the build, and threads are not counted.
if unshare --mount sh -c 'mount -t tmpfs none /proc' 2>/dev/null; then
    run unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$prefix/bin/ds-accel" lint \
        "$build/tests/fixtures/faults/leave_thread/ds_accel_faulty.so"
    has "without /proc a thread that a plugin leaves is found" "$out" "leaves_thread: a thread is still there"
fi
make -C "$source" uninstall BUILD="$dir/build" PREFIX="$prefix" >/dev/null
is "uninstall leaves nothing" "" "$(find "$prefix" ! -type d)"

# Directory names may contain spaces.
here=$(cd "$source" && echo *)
run make -C "$source" install BUILD="$dir/build" PREFIX="$dir/a b" NO_DEPS=1
is "make install into a directory with a space: $err" 0 "$code"
run "$dir/a b/bin/ds-accel" list
has "its plugins are found" "$out" "$dir/a b/lib/ds-accel/ds_accel_cpu.so"
mkdir "$dir/c d"
mv "$dir/five/example.c" "$dir/c d"
cp "$dir/a b/share/doc/ds-accel/example/"[!e]* "$dir/c d"
for goal in check install; do
    run env PKG_CONFIG_PATH="$dir/a b/lib/pkgconfig" make -C "$dir/c d" $goal
    is "make $goal there: $out $err" 0 "$code"
done
run "$dir/a b/bin/ds-accel" -a example detect
is "the plugin is installed there" "0 example" "$code $out"
rm "$dir/a b/lib/ds-accel/ds_accel_example.so"
run make -C "$source" uninstall BUILD="$dir/build" PREFIX="$dir/a b"
is "uninstall leaves nothing there" "0 " "$code $(find "$dir/a b" ! -type d)$(find "$dir/a b" -name 'ds-accel*')"
cp -a "$build/lib/pkgconfig" "$dir/c d"
has "the build directory's flags" "$(PKG_CONFIG_PATH="$dir/c d/pkgconfig" pkg-config --cflags ds-accel)" "c\\ d/"
run make -C "$source" install BUILD="$dir/build" PREFIX=/usr DESTDIR="$dir/e f" NO_DEPS=1
is "DESTDIR with a space" "0 $dir/e f/usr/bin/ds-accel" "$code $(ls "$dir/e f/usr/bin/ds-accel")"
run make -C "$source" uninstall BUILD="$dir/build" PREFIX=/usr DESTDIR="$dir/e f"
is "uninstall leaves nothing below it" "0 " "$code $(find "$dir/e f" ! -type d)$(find "$dir/e f" -name 'ds-accel*')"
is "nothing is left in the sources" "$here" "$(cd "$source" && echo *)"
# A compiled-in directory must not depend on the working directory, so a relative PREFIX is
# rejected.
run make -C "$source" -n install BUILD="$dir/build" PREFIX=here NO_DEPS=1
has "a relative PREFIX" "$code $err" "2 Makefile"
has "a relative PREFIX" "$err" "not an absolute path: BINDIR=here/bin LIBDIR=here/lib"
run make -C "$source" -n build BUILD="$dir/g h"
has "BUILD with a space" "$code $err" "2 Makefile"

make -C "$source" install BUILD="$dir/build" PREFIX=/usr DESTDIR="$dir/stage" NO_DEPS=1 >/dev/null
is "DESTDIR holds everything" "$dir/stage/usr/bin/ds-accel" "$(ls "$dir/stage/usr/bin/ds-accel")"
is "DESTDIR is not compiled in" "" "$(grep -rl "$dir/stage" "$dir/stage" || true)"
make -C "$source" uninstall BUILD="$dir/build" PREFIX=/usr DESTDIR="$dir/stage" >/dev/null
is "uninstall leaves nothing below DESTDIR" "" "$(find "$dir/stage" ! -type d)"

# Libraries in a separate directory: programs link with that directory, not with archives of another
# version elsewhere.
printf '#!/bin/sh\necho -L/elsewhere -ljansson -lnuma\n' >"$dir/pkg-config"
chmod 755 "$dir/pkg-config"
for file in bin/ds-accel libexec/ds-accel/ds-accel-probe; do
    run make -C "$source" -n BUILD="$dir/other" PKG_CONFIG="$dir/pkg-config" "$dir/other/$file"
    linked=$(printf '%s\n' "$out" | grep -o -e '-Wl,--as-needed .*' | tail -n 1)
    has "$file is linked with them" "$linked" "-L/elsewhere "
    is "$file takes no archive" "" "$(printf '%s\n' "$linked" | grep -e '\.a ' || true)"
done
run test -x "$build/bin/ds-accel"
is "the build directory is left alone" 0 "$code"
finish
