#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Text from outside never reaches a terminal unescaped. Many characters are tried in many places
# (arguments, variables, file names, configuration, texts of a plugin, snapshots, recordings), in
# text, JSON, SVG and messages.  test_texts.sh BUILD
set -eu
build=$(cd "$1" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

cat >"$dir/table.py" <<'END'
import json, os, subprocess, sys, unicodedata

build, directory = sys.argv[1:3]
program = os.path.join(build, "bin", "ds-accel")
fixtures = os.path.join(build, "tests", "fixtures")
passed = failed = 0

# One character at least of every kind: control characters, cursor movement, line ends, changes of
# writing direction, invisible characters, language tags, invalid UTF-8.
CODES = [0x07, 0x08, 0x0A, 0x0D, 0x1B, 0x1F, 0x7F, 0x85, 0x9B, 0x9F, 0xAD, 0x61C, 0x180E, 0x200B,
         0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202D, 0x202E, 0x2060, 0x2064, 0x2066, 0x2069,
         0x3164, 0xFE0F, 0xFEFF, 0xFFF9, 0xFFFE, 0xE0001, 0xE0061, 0xE01EF]
BYTES = [b"\xed\xa0\x80", b"\xc0\x9b", b"\xe0\x80\x9b", b"\xff", b"\xc3", b"\xf4\x90\x80\x80"]
FORGED = "ds-accel: warning: forged"
PIECES = ([chr(code).encode() for code in CODES] + BYTES +
          [("\n" + FORGED + "\n").encode(), b"\x1b[2J\x1b]0;owned\x07", b"\r\x1b[K" + FORGED.encode()])
# ALL joins all characters for slow commands; TEXT leaves out invalid UTF-8, for places where the
# text must be valid.
ALL = b"a" + b"b".join(PIECES) + b"c"
TEXT = "a" + "b".join(piece.decode() for piece in PIECES if piece not in BYTES) + "c"
SHORT = "a\u202e\u200b\u2066\u009b2J"


def check(name, good, detail=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAILED:", name, "\n   ", detail)


def look(name, output, is_json=False):
    """Check that TEXT has no character that a terminal obeys or hides, and that JSON is valid."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        check(name, False, "%s in %r" % (error, output[:2000]))
        return
    bad = [character for character in text
           if character != "\n" and (unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Cn")
                                     or ord(character) in (0x3164, 0xFE0F, 0xE01EF))]
    forged = [line for line in text.split("\n") if line.startswith(FORGED)]
    check(name, not bad and not forged, "%a %r in %r" % ("".join(bad), forged, output[:2000]))
    if is_json and text:
        try:
            json.loads(text)
        except ValueError as error:
            check(name, False, "%s in %r" % (error, output[:2000]))


def run(name, arguments, env=None, says=b"", code=None, is_json=None):
    arguments = [argument if isinstance(argument, bytes) else os.fsencode(argument) for argument in arguments]
    whole = dict(os.environb)
    for key, value in (env or {}).items():
        whole[os.fsencode(key)] = value if isinstance(value, bytes) else os.fsencode(value)
    done = subprocess.run([os.fsencode(program)] + arguments, env=whole, stdin=subprocess.DEVNULL,
                          capture_output=True, cwd=directory)
    look(name + ": answer", done.stdout, b"--json" in arguments if is_json is None else is_json)
    look(name + ": messages", done.stderr)
    check(name + ": it has something to say", says in done.stdout + done.stderr and done.returncode < 8
          and done.returncode >= 0 and (code is None or done.returncode == code),
          "%d %r %r" % (done.returncode, done.stdout[:500], done.stderr[:500]))
    return done


def write(path, data):
    path = os.path.join(os.fsencode(directory), path if isinstance(path, bytes) else os.fsencode(path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


# ---- each character in quick commands ------------------------------------------------------------
for piece in PIECES:
    word = b"a" + piece + b"z"
    label = ascii(piece)
    run("command " + label, [word], code=2, says=b"unknown command")
    run("help of " + label, ["help", word], code=2, says=b"unknown command")
    run("option " + label, ["--" + "x", b"--" + word, "detect"], code=2)
    run("option behind " + label, ["detect", b"--" + word], code=2, says=b"unknown option")
    run("letter " + label, ["detect", b"-" + piece], code=2)
    run("name " + label, ["detect", "-a", word], code=4)
    run("variable " + label, ["detect"], env={"DS_ACCELERATOR": word}, code=4)
    run("unknown variable " + label, ["config", "check"], env={b"DS_ACCEL_" + word.replace(b"=", b""): b"1"})
    run("file of configuration " + label, ["config", "check", "--config", word], code=5, says=b"cannot read")
    run("configuration's subcommand " + label, ["config", "check", "show", word])

# ---- all characters at once: every command, every place ------------------------------------------
LONG = b"d/" + ALL.replace(b"/", b"")[:200]
COMMANDS = {
    "detect": [], "list": [], "info": ["mock"], "explain": [], "env": ["mock"], "doctor": ["-v"],
    "topo": ["mock"], "report": [], "config": ["show"], "cache": ["show"], "quarantine": ["list"],
}
for command, more in COMMANDS.items():
    for json_option in ([], ["--json"]):
        if command == "report" and not json_option:
            continue
        given = [command] + more + json_option
        run("%s, root" % given, given + ["--root", LONG])
        run("%s, plugin directory" % given, given + ["--plugin-dir", LONG])
        run("%s, machine" % given, given + ["--machine", LONG], says=b"ds-accel: ")
        run("%s, variables" % given, given, env={
            "DS_ACCEL_ROOT": LONG, "DS_ACCEL_PLUGIN_PATH": LONG, "DS_ACCEL_LOG": ALL.replace(b",", b""),
            "DS_ACCEL_LAYERS": ALL, "DS_ACCEL_TRACE_FILE": LONG, "DS_ACCEL_RACE_FILE": LONG,
            "DS_ACCEL_ALLOCATOR": ALL, "DS_ACCEL_MOCK_FAIL": ALL, "DS_ACCEL_CPU_NUMA": ALL,
            "XDG_RUNTIME_DIR": b"/" + LONG, "XDG_CONFIG_HOME": b"/" + LONG})
        run("%s, cache" % given, given, env={"DS_ACCEL_CACHE": "rw", "DS_ACCEL_CACHE_DIR": LONG})
        run("%s, mode of the cache" % given, given, env={"DS_ACCEL_CACHE": ALL}, code=5)
        run("%s, place of plugins" % given, given, env={"DS_ACCEL_PROBE": ALL}, code=5)
        run("%s, output" % given, given + ["-o", LONG])
        run("%s, an argument too many" % given, given + [ALL, ALL])
    if more[:1] == ["mock"] or command in ("explain", "info", "env"):
        run("%s, name" % command, [command, ALL])
for given in (["lint", LONG], ["conformance", LONG], ["conformance", "cpu", "--rule", ALL],
              ["conformance", "cpu", "--device", ALL], ["conformance", "cpu", "--group", ALL],
              ["memory", "show", LONG], ["memory", "replay", LONG], ["memory", ALL, "x"], ["cache", ALL],
              ["quarantine", ALL], ["quarantine", "clear", ALL], ["quarantine", ALL, ALL], ["config", ALL],
              ["bench", ALL], ["bench", "--only", ALL], ["bench", "--size", ALL], ["bench", "--time", ALL],
              ["bench", "--device", ALL], ["topo", ALL, ALL], ["report", "--record", LONG],
              ["report", "-o", LONG], ["info", "--memory-map=" + os.fsdecode(LONG)], ["info", "mock", ALL, ALL]):
    run("%a" % given, given, says=b"ds-accel: " if given[0] != "topo" else b"")
    run("%a" % (given + ["-vv"]), given + ["-vv"])

# ---- file names ----------------------------------------------------------------------------------
for piece in PIECES:
    if b"/" not in piece:
        write(b"plugins/ds_accel_a" + piece + b".so", "")
        write(b"conf/conf.d/a" + piece + b".json", "{")
odd = os.path.join(os.fsencode(directory), b"odd" + ALL.replace(b"/", b"")[:150])
os.makedirs(odd)
with open(os.path.join(fixtures, "mocks", "ds_accel_alpha.so"), "rb") as file:
    write(os.path.join(odd, b"ds_accel_alpha.so"), file.read())
write(os.path.join(odd, b"ds-accel", b"x" + ALL.replace(b"/", b"")[:150] + b".json"), '{"accelerater": 1}')
for command, more in COMMANDS.items():
    for json_option in ([], ["--json"]):
        given = [command] + more + json_option
        if command == "report" and not json_option:
            continue
        run("%s, odd files" % given, given + ["--plugin-dir", directory + "/plugins", "--plugin-dir", odd, "-v"],
            is_json=bool(json_option))
        run("%s, odd configuration" % given, given, env={"XDG_CONFIG_HOME": odd}, code=5)
run("config check, odd configuration", ["config", "check"], env={"XDG_CONFIG_HOME": odd}, code=5, says=b"accelerater")
run("config check --json, odd configuration", ["config", "check", "--json"], env={"XDG_CONFIG_HOME": odd}, code=5)
run("lint of an odd file", ["lint", os.path.join(odd, b"ds_accel_alpha.so")], code=0, says=b"keeps every rule")
run("explain of an odd place", ["explain", "alpha", "--plugin-dir", odd, "-v"], says=b"alpha: ")

# ---- values of the configuration -----------------------------------------------------------------
config = write("values.json", json.dumps({
    "plugin_dirs": ["/" + TEXT], "deny": [TEXT], "backends": {
        "mock": {"communication_backend": SHORT, "compile_backend": SHORT,
                 "env": [{"name": "ODD", "value": TEXT, "rule": "always"}],
                 "remedies": {"no_device": SHORT}}}}))
for given in (["config", "show"], ["info", "mock"], ["env", "mock"], ["explain"], ["doctor", "-v"], ["list"],
              ["detect", "-a", "mock"], ["report"], ["topo"]):
    for json_option in ([], ["--json"]):
        run("%s, values" % (given + json_option), given + json_option + ["--config", config])
        run("%s, values of a script" % (given + json_option), given + json_option + ["--config", config],
            env={"DS_ACCEL_MOCK_AVAILABLE": "false", "DS_ACCEL_MOCK_REASON": "no_device"})
# JSON contains the value itself, and the shell gets the same value back from the text.
done = run("config show", ["config", "show", "--json", "--config", config], code=0)
values = {value["key"]: value["value"] for value in json.loads(done.stdout)["values"]}
check("JSON keeps the value", [value for value in values.values() if value in (TEXT, [TEXT])], ascii(values)[:500])
done = run("env", ["env", "mock", "--config", config], code=0, says=b"ODD=")
made = subprocess.run(["sh", "-c", b'eval "$1"; printf "%s" "$ODD"', "sh", done.stdout], capture_output=True).stdout
check("the shell makes it again", made == TEXT.encode(), "%r" % made)
for key in (TEXT, "a\n" + FORGED):
    bad = write("bad.json", json.dumps({key: 1, "backends": {key: {key: 1}}}))
    run("keys", ["config", "check", "--config", bad], code=5, says=b"bad.json")
    run("keys, detect", ["detect", "--config", bad], code=5, says=b"bad.json")
    run("keys, JSON", ["config", "check", "--json", "--config", bad], code=5)

# ---- a plugin's own texts ------------------------------------------------------------------------
for given in (["detect"], ["list"], ["info"], ["explain", "-v"], ["doctor", "-v"], ["topo"], ["topo", "--svg"],
              ["info", "--memory-map"], ["report"], ["bench", "--only", "event", "--time", "0.001"],
              ["conformance", "mock", "--group", "device", "-v"], ["report", "--record", "kept.json"]):
    for json_option in ([], ["--json"]):
        if json_option and ("--svg" in given):
            continue
        run("%s, names of devices" % (given + json_option), given + json_option, env={
            "DS_ACCELERATOR": "mock", "DS_ACCEL_MOCK_DEVICE_NAME": ALL, "DS_ACCEL_MOCK_VARIANT": ALL})
        run("%s, details" % (given + json_option), given + json_option, env={
            "DS_ACCELERATOR": "mock", "DS_ACCEL_MOCK_AVAILABLE": "false", "DS_ACCEL_MOCK_DETAIL": ALL,
            "DS_ACCEL_MOCK_REASON": "no_device"})

# ---- snapshots and recordings --------------------------------------------------------------------
snapshot = write("snapshot.json", json.dumps({
    "ds_accel": {"accelerator": TEXT, "version": TEXT}, "segments": [{
        "device": 0, "address": 4096, "total_size": 4096, "allocated_size": 512, "stream": 0,
        "segment_type": TEXT, "blocks": [{
            "address": 4096, "size": 4096, "requested_size": 512, "state": "active_allocated", "tag": TEXT,
            "frames": [{"name": TEXT, "filename": TEXT, "line": 1}]}]}],
    "device_traces": [[{"action": "alloc", "addr": 4096, "size": 4096, "stream": 0, "time_us": 1,
                        "frames": [{"name": TEXT, "filename": TEXT, "line": 1}]}]],
    "allocator_settings": {TEXT: TEXT}}))
for given in (["memory", "show", snapshot], ["memory", "show", "--json", snapshot], ["memory", "show", "--svg", snapshot],
              ["memory", "replay", snapshot], ["memory", "replay", "--json", snapshot],
              ["memory", "replay", snapshot, "--try", ALL], ["memory", "replay", snapshot, "--try", "max_split_size_mb=\n7"],
              ["info", "--memory-map=" + os.fsdecode(snapshot)]):
    run("%a" % given, given)


machine = os.path.join(directory, "machine.json")
run("record", ["report", "--record", machine], code=0)
with open(machine) as file:
    recorded = json.load(file)


def spots(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from spots(item, path + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from spots(item, path + (i,))
    elif isinstance(value, str):
        yield path


# All characters are in a single text; of each kind of place only the first is tried.
seen = {}
for path in list(spots(recorded)):
    kind = tuple(part if isinstance(part, str) and not part.startswith("/") else 0 for part in path)
    seen[kind] = seen.get(kind, 0) + 1
    if seen[kind] > 1:
        continue
    copy = json.loads(json.dumps(recorded))
    place = copy
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] += TEXT
    altered = write("altered.json", json.dumps(copy))
    run("recording %s" % (path,), ["explain", "--machine", altered])
    run("recording %s, JSON" % (path,), ["info", "mock", "--json", "--machine", altered])

print("test_texts: %d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
END
timeout 550 python3 "$dir/table.py" "$build" "$dir"
