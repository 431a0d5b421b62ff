#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Write the initial ELF files of fuzz_elf's corpus: the smallest plugin, and invalid ones.

    elf_seeds.py DIRECTORY

Each file has a name that says what it is. They are of x86-64, in which class and byte order all of them are read.
"""
import pathlib
import struct
import sys

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_TLS, PT_GNU_STACK = 1, 2, 4, 7, 0x6474E551
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 1, 4, 5, 6, 10
DT_RPATH, DT_TEXTREL, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS = 15, 22, 24, 29, 30
DT_GNU_HASH, DT_FLAGS_1, DT_AUXILIARY = 0x6FFFFEF5, 0x6FFFFFFB, 0x7FFFFFFD
HEADER_BYTES, SEGMENT_BYTES = 64, 56
OURS, HARDWARE = 0x44530001, 0x44530002


def header(segments=1, machine=62, kind=3, elf_class=2, data=1, size=SEGMENT_BYTES, at=HEADER_BYTES):
    ident = b"\x7fELF" + bytes([elf_class, data, 1]) + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, at, 0, 0, HEADER_BYTES, size, segments, 64, 0, 0)


def segment(kind, offset, size, flags=4, align=4, memory=None):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size if memory is None else memory, align)


def desc(name=b"mock", size=160, major=1, minor=0, required=0, version=b"1.0", vendor=b"ds-accel"):
    return struct.pack("<IHHQQII32s32s64s", size, major, minor, required, 0, 1024, 0, name, version, vendor)


def note(body=None, owner=b"ds-accel\0", kind=OURS, align=4, desc_size=None):
    body = desc() if body is None else body
    head = struct.pack("<III", len(owner), len(body) if desc_size is None else desc_size, kind) + owner
    head += bytes(-len(head) % align)
    return head + body + bytes(-len(body) % align)


def noted(notes, align=4):
    """A file with one segment of notes."""
    return header(1) + segment(PT_NOTE, HEADER_BYTES + SEGMENT_BYTES, len(notes), align=align) + notes


def dynamic(hashed="gnu", symbols=2, repeat=1, extra=(), stack=6, library=b"libm.so.6"):
    """A plugin that needs a library and exports its entry; REPEAT dynamic segments."""
    count = 3 + repeat
    start = HEADER_BYTES + count * SEGMENT_BYTES
    ours = note()
    strings = b"\0" + library + b"\0ds_accel_entry_v1\0"
    table = bytes(24) + struct.pack("<IBBHQQ", len(library) + 2, 0x12, 0, 7, 0, 0) * (symbols - 1)
    if hashed == "gnu":
        hashes = struct.pack("<IIIIQI", 1, 1, 1, 6, 0, 1) + struct.pack("<I", 2) * (symbols - 2) + struct.pack("<I", 3)
    else:
        hashes = struct.pack("<IIIII", 1, symbols, 1, 0, 0)
    at_strings = start + len(ours)
    at_table = at_strings + len(strings)
    at_hashes = at_table + len(table)
    at_entries = at_hashes + len(hashes)
    entries = [(DT_NEEDED, 1), (DT_STRTAB, at_strings), (DT_STRSZ, len(strings)), (DT_SYMTAB, at_table),
               (DT_GNU_HASH if hashed == "gnu" else DT_HASH, at_hashes), *extra, (0, 0)]
    entries = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    end = at_entries + len(entries)
    segments = [segment(PT_LOAD, 0, end, flags=5), segment(PT_NOTE, start, len(ours))]
    segments += [segment(PT_DYNAMIC, at_entries, len(entries), flags=6)] * repeat
    segments.append(segment(PT_GNU_STACK, 0, 0, flags=stack))
    return header(count) + b"".join(segments) + ours + strings + table + hashes + entries


SEEDS = {
    "empty": b"",
    "not_elf": b"#!/bin/sh\n",
    "magic_alone": b"\x7fELF",
    "ident_alone": header()[:16],
    "header_cut": header()[:40],
    "header_alone": header(),
    "32_bit": noted(note()).replace(b"ELF\x02", b"ELF\x01"),
    "big_endian": noted(note()).replace(b"ELF\x02\x01", b"ELF\x02\x02"),
    "other_machine": header(machine=183) + noted(note())[HEADER_BYTES:],
    "program": header(kind=2) + noted(note())[HEADER_BYTES:],
    "no_segments": header(segments=0),
    "many_segments": header(segments=65535),
    "segment_size": header(size=55) + noted(note())[HEADER_BYTES:],
    "segments_past_end": header(at=(1 << 64) - 32),
    "segment_past_end": header() + segment(PT_LOAD, 0, 1 << 40),
    "segment_wraps": header() + segment(PT_LOAD, (1 << 64) - 8, 64),
    "tls_large": header() + segment(PT_TLS, 0, 0, memory=1 << 40),
    "no_note": header() + segment(PT_LOAD, 0, HEADER_BYTES),
    "note": noted(note()),
    "note_aligned_8": noted(note(align=8), align=8),
    "note_behind_another": noted(note(b"\x11" * 20, owner=b"GNU\0", kind=3) + note()),
    "note_twice": noted(note() + note()),
    "note_of_next_generation": noted(note(desc(major=2))),
    "note_of_both_generations": noted(note(desc(major=2)) + note()),
    "note_name_differs": noted(note(desc(name=b"cuda"))),
    "note_name_unended": noted(note(desc(name=b"m" * 32))),
    "note_vendor_unended": noted(note(desc(vendor=b"v" * 64))),
    "note_version_empty": noted(note(desc(version=b""))),
    "note_feature": noted(note(desc(required=1 << 63))),
    "note_short": noted(note(desc()[:6])),
    "note_head_alone": noted(note(desc()[:8])),
    "note_says_less": noted(note(desc(size=40))),
    "note_says_more": noted(note(desc(size=4096))),
    "note_is_longer": noted(note(desc(size=176) + bytes(8))),
    "note_of_other_owner": noted(note(owner=b"ds-Accel\0")),
    "note_desc_past_end": noted(note(desc_size=0xFFFFFFF0)),
    "note_segment_cut": noted(note()[:-4]),
    "note_cut": noted(note())[:-4],
    "note_header_cut": noted(note()[:8]),
    "hardware": noted(note(b"pci 10de:03\nnode /dev/nvidia[0-9]*\n\0", kind=HARDWARE) + note()),
    "hardware_empty": noted(note(b"\0", kind=HARDWARE) + note()),
    "hardware_nothing": noted(note(b"", kind=HARDWARE) + note()),
    "hardware_unknown_line": noted(note() + note(b"usb 1:2\n\n\x1b\xff\n\0", kind=HARDWARE)),
    "hardware_bad_lines": noted(note() + note(b"pci \x1b[31m\nnode x\n\0", kind=HARDWARE)),
    "hardware_long_line": noted(note() + note(b"node /dev/" + b"x" * 400 + b"\n\0", kind=HARDWARE)),
    "hardware_unended": noted(note() + note(b"pci 10de", kind=HARDWARE)),
    "hardware_last_line_unended": noted(note() + note(b"pci 10de\nnode /dev/x\0", kind=HARDWARE)),
    "hardware_twice": noted(note(b"pci 10de\n\0", kind=HARDWARE) * 2 + note()),
    "hardware_large": noted(note() + note(b"pci 10de\n" * 600 + b"\0", kind=HARDWARE)),
    "dynamic_gnu_hash": dynamic("gnu"),
    "dynamic_sysv_hash": dynamic("sysv"),
    "dynamic_exports": dynamic("gnu", symbols=8),
    "dynamic_flags": dynamic("gnu", extra=((DT_FLAGS, 8 | 4), (DT_FLAGS_1, 9)), stack=7),
    "dynamic_old_flags": dynamic("gnu", extra=((DT_BIND_NOW, 0), (DT_TEXTREL, 0))),
    "dynamic_needed": dynamic("gnu", extra=((DT_NEEDED, 1), (DT_NEEDED, 1 << 40), (DT_NEEDED, 3))),
    "dynamic_repeated": dynamic("sysv", repeat=8),
    "dynamic_needed_long": dynamic("gnu", repeat=6, extra=((DT_NEEDED, 1),) * 12, library=b"l" * 1000),
    "dynamic_run_path": dynamic("gnu", extra=((DT_RPATH, 1), (DT_RUNPATH, 1)), library=b"/opt/lib:$ORIGIN"),
    "dynamic_run_path_long": dynamic("gnu", extra=((DT_RUNPATH, 1),) * 12, library=b"/" * 1000),
    "dynamic_chain_unended": dynamic("gnu", symbols=8).replace(struct.pack("<II", 2, 3), struct.pack("<II", 2, 2)),
    "dynamic_executable_stack": dynamic("gnu", stack=7),
    "dynamic_unmarked_stack": dynamic("gnu").replace(struct.pack("<II", PT_GNU_STACK, 6), struct.pack("<II", 0, 6)),
    "dynamic_text_relocations": dynamic("gnu", extra=((DT_FLAGS, 4),)),
    "dynamic_relative_run_path": dynamic("gnu", extra=((DT_RUNPATH, 1),), library=b"/opt/lib::$ORIGIN/../lib:lib"),
    "dynamic_origin_run_path": dynamic("gnu", extra=((DT_RUNPATH, 1),), library=b"$ORIGIN:${ORIGIN}/x:/usr/$LIB"),
    "dynamic_relative_library": dynamic("gnu", library=b"lib/libm.so.6"),
    "dynamic_relative_filter": dynamic("gnu", extra=((DT_AUXILIARY, 1),), library=b"$LIB/x.so"),
    "dynamic_name_unended": dynamic("gnu", extra=((DT_STRSZ, 4),)),
    "dynamic_unended": dynamic("gnu")[:-16] + struct.pack("<QQ", DT_NEEDED, 1),
    "dynamic_tables_wrap": dynamic("gnu", extra=((DT_STRTAB, (1 << 64) - 8), (DT_SYMTAB, (1 << 64) - 24))),
}


def main():
    directory = pathlib.Path(sys.argv[1])
    for name, data in SEEDS.items():
        (directory / name).write_bytes(data)


if __name__ == "__main__":
    main()
