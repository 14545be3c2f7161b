# SPDX-License-Identifier: BSD-2-Clause
"""A table in CSV as RFC 4180 has it, by its grammar and nothing more: LF or CRLF ends a record."""

import re

FIELD = re.compile(r'"((?:[^"]|"")*)"|([^",\r\n]*)')


def strict_rows(text, parts=False):
    """All records. Each has as many fields as the first, unless they are of several tables (parts); the last one ends, too; nothing
    stands around quotes."""
    rows, row, at = [], [], 0
    while at < len(text):
        field = FIELD.match(text, at)
        row.append(field.group(2) if field.group(1) is None else field.group(1).replace('""', '"'))
        at = field.end()
        end = re.compile(r",|\r?\n").match(text, at)
        assert end, "record %d, field %d: %r follows" % (len(rows), len(row), text[at:at + 20])
        at = end.end()
        if end.group() != ",":
            rows.append(row)
            row = []
    assert not row, "the last record has no end"
    assert parts or len({len(one) for one in rows}) <= 1, "records of %s fields" % sorted({len(one) for one in rows})
    return rows
