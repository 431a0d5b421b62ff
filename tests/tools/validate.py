#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Read JSON with a second parser and check it against its schema.

    validate.py SCHEMA|- [PATH...] <JSON

"-" means no schema. Exit code 0, or 1 with a message: invalid UTF-8 or JSON (NaN and Infinity are
invalid), a duplicate key in an object, or a violation of the schema. A report (its schema has a
schema_version) must also have its keys in the schema's order, and no others. The value at each PATH
is then printed on its own line, a text as it is, anything else as JSON: "candidates/name=cuda/state"
is the state of the first candidate whose name is cuda, "devices/0" the first device, "devices/#"
their number, "*" every item's value.
"""
import json
import sys


class Problem(Exception):
    """A problem, described in one line."""


def unique(pairs):
    seen = {}
    for key, value in pairs:
        if key in seen:
            raise Problem(f'the key "{key}" is in one object twice')
        seen[key] = value
    return seen


def refuse(constant):
    raise Problem(f"{constant} is not JSON")


def read(text):
    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def check_order(value, schema, root, where):
    """Check that objects have only keys of the schema, in its order."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            check_order(item, schema["items"], root, f"{where}/{number}")
    if not isinstance(value, dict) or "properties" not in schema:
        return
    known = list(schema["properties"])
    for key in value:
        if key not in known:
            raise Problem(f'{where}: the schema has no key "{key}"')
    wanted = [key for key in known if key in value]
    if list(value) != wanted:
        raise Problem(f"{where}: keys {list(value)} are not in the schema's order {wanted}")
    for key, member in value.items():
        check_order(member, schema["properties"][key], root, f"{where}/{key}")


def check(value, schema):
    import jsonschema  # slow to import, and not always needed

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise Problem(f"the schema itself: {error.message}") from error
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        where = "/".join(str(step) for step in error.absolute_path)
        raise Problem(f"/{where}: {error.message}")
    if "schema_version" in schema.get("properties", {}):
        check_order(value, schema, schema, "")


def find(value, path):
    """The values at a path: one, or all matches of a path with "*"."""
    values = [value]
    for step in path.split("/"):
        following = []
        for item in values:
            if step == "#":
                following.append(len(item))
            elif step == "*":
                following.extend(item)
            elif isinstance(item, list) and "=" in step:
                key, wanted = step.split("=", 1)
                following.extend([entry for entry in item if entry[key] == wanted][:1])
            elif isinstance(item, list) and step.isdigit():
                following.extend(item[int(step):int(step) + 1])
            elif isinstance(item, dict) and step in item:
                following.append(item[step])
        values = following
    return values


def main(arguments):
    if not arguments:
        raise Problem("usage: validate.py SCHEMA|- [PATH...] <JSON")
    value = read(sys.stdin.buffer.read().decode("utf-8"))
    if arguments[0] != "-":
        with open(arguments[0], encoding="utf-8") as file:
            check(value, read(file.read()))
    for path in arguments[1:]:
        found = find(value, path)
        if not found:
            raise Problem(f"there is no {path}")
        for item in found:
            print(item if isinstance(item, str) else json.dumps(item))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Problem, ValueError, OSError) as problem:
        sys.exit(f"{sys.argv[1] if len(sys.argv) > 1 else 'validate.py'}: {problem}")
