#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Compare the plugins' declarations of a vendor's API with the vendor's headers.

    compare.py [--need NAME]... [--in VARIABLE=DIRECTORIES]... TABLE...
    compare.py --cover TABLE...

A table (README.md has the format) names our files, the vendor's headers, and which of our
declarations stands for which of the vendor's. libclang reads both. DIRECTORIES are separated by
spaces or colons; a table whose headers are in none of them is skipped with a message, and is an
error with --need NAME (the table's name without .table). --cover needs no vendor's headers: it lists
our declarations that no table mentions. Exit code 0; 1 with a line for each difference; 2 if the
comparison could not run.
"""
import ctypes
import fnmatch
import os
import pathlib
import re
import sys

from clang.cindex import Config, CursorKind, Index, TranslationUnit, TypeKind

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OURS_FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-I" + ROOT, "-I" + ROOT + "/plugins/common"]
SIGNED = {TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
UNSIGNED = {TypeKind.BOOL, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG}
PLAIN = {TypeKind.CHAR_S, TypeKind.CHAR_U}
FLOATS = {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE}
ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY}
# A line of a table that maps numbers to names: a brace or a bracket, the number, and the first
# text.
NAMED = re.compile(r'^\s+(?:\[|{|RESULT\()(-?\w+)[^"\n]*"(\w+)"', re.MULTILINE)
FUNCTIONS = {TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO}


class Problem(Exception):
    """Why the comparison cannot run, in one line."""


# ---- tables --------------------------------------------------------------------------------------


class Table:
    """The rows of a file, each with its condition, or None."""

    KINDS = ("ours", "theirs", "variable", "flags", "functions", "function", "except", "maybe", "struct", "head", "value",
             "values", "names", "unnamed", "own")

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path).rsplit(".", 1)[0]
        self.rows = []
        self.conditions = []
        condition, begun = None, ""
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number, line in enumerate(lines, 1):
            begun += line
            if line.endswith("\\"):
                begun = begun[:-1]
                continue
            words, begun = begun.split("#", 1)[0].split(), ""
            if not words:
                continue
            if words[0] == "when":
                condition = " ".join(words[1:])
                self.conditions.append(condition)
            elif words[0] == "always":
                condition = None
            elif words[0] in self.KINDS and len(words) > 1:
                for row in self.spread(words):
                    self.rows.append((row[0], row[1:], condition))
            else:
                raise Problem(f"{path}:{number}: no row: {line.strip()}")

    @staticmethod
    def spread(words):
        """Row values OURS THEIRS NAME...: a row value OURSNAME THEIRSNAME per name; - is an empty prefix."""
        if words[0] != "values":
            return [words]
        ours, theirs = ["" if prefix == "-" else prefix for prefix in words[1:3]]
        return [["value", ours + name, theirs + name] for name in words[3:]]

    def of(self, kind):
        return [words for row, words, _ in self.rows if row == kind]

    def words(self, kind):
        return [word for words in self.of(kind) for word in words]


# ---- reading C -----------------------------------------------------------------------------------


def parse(text, flags, what, is_cxx=False):
    """The translation unit of TEXT, and the lines of errors in TEXT. Errors elsewhere raise Problem."""
    name = "/probe.cc" if is_cxx else "/probe.c"
    unit = Index.create().parse(name, args=["-ferror-limit=0"] + flags, unsaved_files=[(name, text)],
                                options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    wrong = {}
    for diagnostic in unit.diagnostics:
        if diagnostic.severity < 3:
            continue
        file = diagnostic.location.file
        if file is None or file.name != name or diagnostic.severity > 3:
            raise Problem(f"{what}: {file.name if file else ''}:{diagnostic.location.line}: {diagnostic.spelling}")
        wrong[diagnostic.location.line] = diagnostic.spelling
    return unit, wrong


class Side:
    """The declarations of one side: our files or the vendor's headers."""

    def __init__(self, includes, flags, what, is_cxx=False):
        self.includes = "".join(f'#include "{name}"\n' for name in includes)
        self.flags, self.what, self.is_cxx = flags, what, is_cxx
        self.functions, self.types, self.macros, self.enumerators, self.constants = {}, {}, {}, {}, {}
        unit, wrong = parse(self.includes, flags, what, is_cxx)
        if wrong:
            raise Problem(f"{what}: {next(iter(wrong.values()))}")
        self.collect(unit.cursor)

    def collect(self, cursor):
        for child in cursor.get_children():
            if child.kind == CursorKind.FUNCTION_DECL:
                self.functions[child.spelling] = child.type.get_canonical()
            elif child.kind == CursorKind.TYPEDEF_DECL:
                self.types[child.spelling] = child.underlying_typedef_type.get_canonical()
            elif child.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and child.spelling:
                if child.is_definition() or "struct " + child.spelling not in self.types:
                    self.types["struct " + child.spelling] = child.type.get_canonical()
                    if self.is_cxx:
                        self.types.setdefault(child.spelling, child.type.get_canonical())
            elif child.kind == CursorKind.ENUM_DECL:
                for value in child.get_children():
                    if value.kind == CursorKind.ENUM_CONSTANT_DECL:
                        self.enumerators[value.spelling] = value
            elif child.kind == CursorKind.VAR_DECL:
                self.constants[child.spelling] = child
            elif child.kind == CursorKind.MACRO_DEFINITION:
                self.macros[child.spelling] = child
            elif child.kind in (CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL):
                self.collect(child)

    def type(self, name):
        return self.types.get(name) or self.types.get("struct " + name)

    def evaluate(self, expressions, conditions=()):
        """The value of each expression, or None; then the value of each preprocessor condition."""
        first = self.includes.count("\n") + 1
        lines = [f"enum {{ probe_{i} = ({text}) }};" for i, text in enumerate(expressions)]
        for i, text in enumerate(conditions):
            lines += [f"#if {text}", f"enum {{ when_{i} = 1 }};", "#else", f"enum {{ when_{i} = 0 }};", "#endif"]
        unit, wrong = parse(self.includes + "\n".join(lines) + "\n", self.flags, self.what, self.is_cxx)
        found = {}
        for cursor in unit.cursor.get_children():
            if cursor.kind == CursorKind.ENUM_DECL and cursor.location.file and cursor.location.file.name[:6] == "/probe":
                for value in cursor.get_children():
                    found[value.spelling] = value.enum_value
        values = [None if first + i in wrong else found.get(f"probe_{i}") for i in range(len(expressions))]
        return values, [found.get(f"when_{i}") == 1 for i in range(len(conditions))]


# ---- comparing types -----------------------------------------------------------------------------


def member(type_, path):
    """Offset in bytes and type of a member like "a.b"; None if there is no such member."""
    bits = type_.get_offset(path.split(".")[0])
    if bits < 0:
        return None
    head, _, rest = path.partition(".")
    inner = field_type(type_, head)
    if inner is None:
        return None
    if not rest:
        return bits // 8, inner
    below = member(inner, rest)
    return below and (bits // 8 + below[0], below[1])


def field_type(type_, name):
    for field in type_.get_fields():
        if field.spelling == name:
            return field.type.get_canonical()
        if field.is_anonymous():
            inner = field_type(field.type.get_canonical(), name)
            if inner is not None:
                return inner
    return None


def is_number(type_):
    return type_.kind in SIGNED | UNSIGNED | PLAIN or type_.kind == TypeKind.ENUM


def tag(type_):
    """A record's name, without const."""
    return type_.get_declaration().type.get_canonical().spelling


def words(type_):
    """A type for a message."""
    if is_number(type_):
        sign = "enum " if type_.kind == TypeKind.ENUM else "unsigned " if type_.kind in UNSIGNED else ""
        return f"{sign}integer of {type_.get_size()} bytes"
    return type_.spelling


class Types:
    """Pairs of our types and the vendor's types."""

    def __init__(self, pairs):
        self.pairs = pairs  # maps the name of our type to names of the vendor's type

    def differs(self, ours, theirs):
        """None, or a description of the difference."""
        ours, theirs = ours.get_canonical(), theirs.get_canonical()
        if is_number(ours) and is_number(theirs):
            return self.numbers_differ(ours, theirs)
        if ours.kind in ARRAYS and theirs.kind in ARRAYS:
            if ours.get_size() != theirs.get_size():
                return f"{ours.get_size()} bytes, theirs {theirs.get_size()}"
            return self.differs(ours.element_type, theirs.element_type)
        if ours.kind == TypeKind.POINTER and theirs.kind == TypeKind.POINTER:
            return self.pointers_differ(ours.get_pointee().get_canonical(), theirs.get_pointee().get_canonical())
        if ours.kind in FUNCTIONS and theirs.kind in FUNCTIONS:
            return self.functions_differ(ours, theirs)
        if ours.kind == TypeKind.RECORD and theirs.kind == TypeKind.RECORD:
            return self.records_differ(ours, theirs)
        if ours.kind == theirs.kind and (ours.kind in FLOATS or ours.kind == TypeKind.VOID):
            return None
        if theirs.kind == TypeKind.RECORD and ours.get_size() == theirs.get_size():
            # The vendor may declare a union that has our number or array as a member, or a struct
            # that wraps it.
            inner = list(theirs.get_fields())
            if any(field.type.get_size() == ours.get_size() and self.differs(ours, field.type) is None for field in inner):
                return None
        return f"{words(ours)}, theirs {words(theirs)}"

    @staticmethod
    def numbers_differ(ours, theirs):
        is_loose = TypeKind.ENUM in (ours.kind, theirs.kind) or ours.kind in PLAIN or theirs.kind in PLAIN
        if ours.get_size() != theirs.get_size() or not is_loose and (ours.kind in SIGNED) != (theirs.kind in SIGNED):
            return f"{words(ours)}, theirs {words(theirs)}"
        return None

    def pointers_differ(self, ours, theirs):
        """Handles are opaque on either side: a pointer to void, or to a struct without members."""
        opaque = [t.kind == TypeKind.VOID or t.kind == TypeKind.RECORD and t.get_size() < 0 for t in (ours, theirs)]
        record = [t.kind == TypeKind.RECORD for t in (ours, theirs)]
        if (opaque[0] and (opaque[1] or record[1])) or (opaque[1] and record[0] and not record[1]):
            return None
        wrong = self.differs(ours, theirs)
        return wrong and "pointer: " + wrong

    def records_differ(self, ours, theirs):
        pair = self.pairs.get(tag(ours))
        if pair is not None:
            return None if tag(theirs) in pair else f"{tag(ours)}, theirs {tag(theirs)}"
        if (ours.get_size(), ours.get_align()) != (theirs.get_size(), theirs.get_align()):
            return f"{ours.get_size()} bytes, theirs {theirs.get_size()}"
        left, right = list(ours.get_fields()), list(theirs.get_fields())
        if len(left) != len(right):
            return f"{len(left)} members, theirs {len(right)} ({tag(ours)} has no row)"
        for a, b in zip(left, right):
            wrong = self.differs(a.type, b.type)
            if wrong:
                return f"{a.spelling}: {wrong}"
        return None

    def functions_differ(self, ours, theirs):
        wrong = self.differs(ours.get_result(), theirs.get_result())
        if wrong:
            return "return: " + wrong
        left = list(ours.argument_types()) if ours.kind == TypeKind.FUNCTIONPROTO else []
        right = list(theirs.argument_types()) if theirs.kind == TypeKind.FUNCTIONPROTO else []
        if len(left) != len(right):
            return f"{len(left)} arguments, theirs {len(right)}"
        for number, (a, b) in enumerate(zip(left, right), 1):
            wrong = self.differs(a, b)
            if wrong:
                return f"argument {number}: {wrong}"
        return None


# ---- one table -----------------------------------------------------------------------------------


class Comparison:
    """One table and the declarations of both sides."""

    def __init__(self, table, ours, theirs):
        self.table, self.ours, self.theirs = table, ours, theirs
        self.differences = []
        self.counts = {"functions": 0, "structs": 0, "numbers": 0, "absent": 0}
        _, holds = theirs.evaluate([], table.conditions)
        self.holds = dict(zip(table.conditions, holds))
        self.rows = [(kind, row) for kind, row, when in table.rows if when is None or self.holds[when]]
        pairs = {}
        for kind, row in self.rows:
            if kind in ("struct", "head"):
                left, right = self.ours.type(row[0]), self.theirs.type(row[1])
                if left is not None and right is not None:
                    pairs.setdefault(tag(left), set()).add(tag(right))
        self.types = Types(pairs)

    def say(self, text):
        self.differences.append(text)

    def run(self):
        maybe = {name for kind, row in self.rows if kind == "maybe" for name in row}
        self.excepted = {name for kind, row in self.rows if kind == "except" for name in row}
        renamed = {row[0]: row[1] for kind, row in self.rows if kind == "function"}
        for kind, row in self.rows:
            if kind == "functions":
                for name in row:
                    self.function_table(name, renamed, maybe)
            elif kind in ("struct", "head"):
                self.record(kind, row, maybe)
        for name, symbol in renamed.items():
            self.function(name, symbol, maybe)
        self.values([row for kind, row in self.rows if kind == "value"], maybe)
        unnamed = [pattern for kind, row in self.rows if kind == "unnamed" for pattern in row]
        for kind, row in self.rows:
            if kind == "names":
                self.names(row, unnamed, maybe)

    def function_table(self, name, renamed, maybe):
        type_ = self.ours.type(name)
        if type_ is None:
            self.say(f"functions {name}: we have no such struct")
            return
        for field in type_.get_fields():
            if f"{name}.{field.spelling}" not in renamed and field.spelling not in self.excepted:
                self.function(f"{name}.{field.spelling}", field.spelling, maybe)

    def function(self, name, symbol, maybe):
        record, _, path = name.partition(".")
        found = self.ours.type(record) and member(self.ours.type(record), path)
        theirs = self.theirs.functions.get(symbol) or self.theirs.type(symbol)
        if found is None:
            self.say(f"{name}: we have no such function")
            return
        if theirs is None:
            self.missing(symbol, maybe)
            return
        ours = found[1].get_canonical()
        theirs = theirs.get_canonical()
        if ours.kind == TypeKind.POINTER:
            ours = ours.get_pointee().get_canonical()
        if theirs.kind == TypeKind.POINTER:
            theirs = theirs.get_pointee().get_canonical()
        self.counts["functions"] += 1
        wrong = self.types.differs(ours, theirs)
        if wrong:
            self.say(f"{symbol}: {wrong}")

    def missing(self, name, maybe):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in maybe):
            self.counts["absent"] += 1
        else:
            self.say(f"{name}: not in the header")

    def record(self, kind, row, maybe):
        ours, theirs = self.ours.type(row[0]), self.theirs.type(row[1])
        if ours is None:
            self.say(f"{row[0]}: we have no such struct")
            return
        if theirs is None:
            self.missing(row[1], maybe)
            return
        self.counts["structs"] += 1
        size, true = ours.get_size(), theirs.get_size()
        if size < true if kind == "head" else size != true:
            self.say(f"{row[1]}: {size} bytes, theirs {true}")
        names = [field.spelling for field in ours.get_fields()]
        wanted = row[2:] or names
        if len(wanted) != len(names):
            self.say(f"{row[0]}: {len(names)} members, and {len(wanted)} in the row")
            return
        for name, theirs_name in zip(names, wanted):
            if theirs_name != "-":
                self.one_member(row[1], ours, name, theirs, theirs_name)

    def one_member(self, where, ours, name, theirs, theirs_name):
        offset, type_ = member(ours, name)
        parts = theirs_name.split("+")
        if len(parts) > 1:
            if type_.kind not in ARRAYS or type_.element_count != len(parts):
                self.say(f"{where}: {name} is no array of {len(parts)}")
                return
            type_ = type_.element_type
        for number, part in enumerate(parts):
            at, right = offset + number * type_.get_size(), member(theirs, part)
            if right is None:
                self.say(f"{where}.{part}: not in the header")
                continue
            wrong = self.types.differs(type_, right[1])
            if at != right[0]:
                self.say(f"{where}.{part}: at {at}, theirs at {right[0]}")
            elif wrong:
                self.say(f"{where}.{part}: {wrong}")

    def values(self, rows, maybe):
        pairs = [(row[0], " ".join(row[1:]) or row[0]) for row in rows]
        ours, _ = self.ours.evaluate([name for name, _ in pairs])
        theirs, _ = self.theirs.evaluate([text for _, text in pairs])
        for (name, text), left, right in zip(pairs, ours, theirs):
            if left is None:
                self.say(f"{name}: we have no such number")
            elif right is None:
                self.missing(text, maybe)
            else:
                self.counts["numbers"] += 1
                size = 1 << (64 if max(left, right) >= 1 << 32 or min(left, right) < -(1 << 31) else 32)
                if left % size != right % size:
                    self.say(f"{text}: {left}, theirs {right}")


    def names(self, row, unnamed, maybe):
        """Check a table in our source from numbers to names: right numbers, and no vendor's name is missing."""
        file, prefix = row[0], "" if row[1] == "-" else row[1]
        with open(os.path.join(ROOT, file), encoding="utf-8") as source:
            found = [(number, prefix + name) for number, name in NAMED.findall(source.read())]
        found = [(number, name) for number, name in found if fnmatch.fnmatchcase(name, row[2])]
        numbers, _ = self.ours.evaluate([number for number, _ in found])
        true, _ = self.theirs.evaluate([name for _, name in found])
        for (_, name), left, right in zip(found, numbers, true):
            if right is None:
                self.missing(name, maybe)
            elif left is None or (left - right) % (1 << 32):
                self.say(f"{name}: {left} in {file}, theirs {right}")
        self.counts["numbers"] += sum(right is not None for right in true)
        parents = {self.theirs.enumerators[name].semantic_parent.hash
                   for _, name in found if name in self.theirs.enumerators}
        wanted = [name for name, value in self.theirs.enumerators.items() if value.semantic_parent.hash in parents]
        wanted += [name for name in list(self.theirs.macros) + list(self.theirs.constants)
                   if any(fnmatch.fnmatchcase(name, pattern) for pattern in row[3:])]
        wanted = [name for name in wanted if not any(fnmatch.fnmatchcase(name, pattern) for pattern in unnamed)]
        known = {left % (1 << 32) for left in numbers if left is not None}
        values, _ = self.theirs.evaluate(wanted)
        for name, value in zip(wanted, values):
            if value is not None and value % (1 << 32) not in known:
                self.say(f"{name}: {value} has no name in {file}")


# ---- declarations without a row ------------------------------------------------------------------


def our_side(table):
    files = table.words("ours")
    for file in files:
        if not os.path.exists(os.path.join(ROOT, file)):
            raise Problem(f"{table.path}: we have no {file}")
    # Ops include headers of ops/ from directories further down.
    directories = {str(parent) for file in files for parent in pathlib.PurePath(file).parents} - {"."}
    flags = ["-I" + os.path.join(ROOT, directory) for directory in sorted(directories)]
    return Side([os.path.join(ROOT, file) for file in files], OURS_FLAGS + flags, "ours")


def declared(side, file):
    """The structs and the named numbers that FILE itself declares."""
    path = os.path.join(ROOT, file)

    def is_here(cursor):
        return cursor.location.file is not None and os.path.samefile(cursor.location.file.name, path)

    structs = {}
    for name, type_ in side.types.items():
        cursor = type_.get_declaration()
        if type_.kind == TypeKind.RECORD and type_.get_size() >= 0 and is_here(cursor):
            structs.setdefault(type_.spelling, set()).add(name.removeprefix("struct "))
    numbers = [name for name, cursor in side.enumerators.items() if is_here(cursor)]
    macros = [name for name, cursor in side.macros.items() if is_here(cursor) and not is_macro_function(cursor)]
    values, _ = side.evaluate(macros)
    numbers += [name for name, value in zip(macros, values) if value is not None]
    return list(structs.values()), numbers


def is_macro_function(cursor):
    ask = Config().lib.clang_Cursor_isMacroFunctionLike
    ask.restype = ctypes.c_uint
    return bool(ask(cursor))


def cover(tables):
    """One line for each of our declarations that no table of its file mentions."""
    told = []
    by_file = {}
    for table in tables:
        for file in table.words("ours"):
            by_file.setdefault(file, []).append(table)
    for file, of_file in sorted(by_file.items()):
        structs, numbers = declared(our_side(of_file[0]), file)
        known, patterns = set(), []
        for table in of_file:
            known.update(table.words("functions"))
            known.update(row[0] for row in table.of("struct") + table.of("head") + table.of("value"))
            known.update(row[0].split(".")[0] for row in table.of("function"))
            patterns += table.words("own")
        for names in [sorted(names) for names in structs] + [[name] for name in numbers]:
            if not known.intersection(names) and not any(fnmatch.fnmatchcase(n, p) for n in names for p in patterns):
                told.append(f"{file}: {names[-1]}: no table mentions it")
    return told


# ---- the command ---------------------------------------------------------------------------------


def directory_with(directories, header):
    for directory in directories:
        if os.path.exists(os.path.join(directory, header)):
            return directory
    return None


def compare(table, directories, is_needed):
    """Compare and print the result; True if there is no difference."""
    headers = table.words("theirs")
    variable = table.words("variable")[0]
    absent = [header for header in headers if directory_with(directories, header) is None]
    if absent:
        where = " or ".join(directories) if directories else "any directory given"
        print(f"{table.name}: {'FAILED' if is_needed else 'skipped'}: no {absent[0]} in {where} ({variable}=DIRECTORY)")
        return not is_needed
    flags = table.words("flags")
    is_cxx = any(flag.startswith("-std=c++") for flag in flags)
    includes = [os.path.join(directory_with(directories, header), header) for header in headers]
    theirs = Side(includes, flags + ["-I" + directory for directory in directories], table.name, is_cxx)
    comparison = Comparison(table, our_side(table), theirs)
    comparison.run()
    for text in comparison.differences:
        print(f"{table.name}: {text}")
    counts = comparison.counts
    print(f"{table.name}: {counts['functions']} functions, {counts['structs']} structs, {counts['numbers']} numbers; "
          f"{counts['absent']} not in this header; {len(comparison.differences)} differences ({includes[0]})")
    return not comparison.differences


def main(arguments):
    needed, directories, paths, is_cover = set(), {}, [], False
    rest = iter(arguments)
    for argument in rest:
        if argument == "--cover":
            is_cover = True
        elif argument == "--need":
            needed.add(next(rest, ""))
        elif argument == "--in":
            name, _, value = next(rest, "").partition("=")
            directories[name] = value.replace(":", " ").split()
        else:
            paths.append(argument)
    tables = [Table(path) for path in paths]
    unknown = needed - {table.name for table in tables}
    if unknown or not tables:
        raise Problem(f"no table {' '.join(sorted(unknown))}".rstrip())
    if is_cover:
        told = cover(tables)
        print("\n".join(told + [f"{len(told)} declarations that no table mentions"]))
        return 1 if told else 0
    results = [compare(t, directories.get(t.words("variable")[0], []), t.name in needed) for t in tables]
    return 0 if all(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Problem, OSError) as problem:
        print(f"compare.py: {problem}", file=sys.stderr)
        sys.exit(2)
