# SPDX-License-Identifier: BSD-2-Clause
"""What was measured: rows of repetitions, against limits, as a table and as JSON."""

import json
import statistics

AT_MOST, AT_LEAST = "<=", ">="
COLUMNS = "%-64s %12s %12s %12s %3s  %-9s %-12s %s"


def figure(value):
    """Whole numbers as such, others with three digits that count."""
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return "{:,.0f}".format(value)
    return "%.*f" % (1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3, value)


class Results:
    def __init__(self, quick):
        self.quick = quick
        self.about = {}
        self.rows = []
        self._section = None

    def tell(self, **about):
        """Facts about the machine and the run, which stand above the table."""
        self.about.update(about)
        for name, value in about.items():
            print("%-12s %s" % (name.replace("_", " "), value), flush=True)

    def section(self, title):
        self._section = title
        print("\n== %s" % title, flush=True)
        print(COLUMNS % ("", "median", "min", "max", "n", "unit", "limit", ""), flush=True)

    def add(self, name, values, unit, limit=None, kind=AT_MOST, note=""):
        """One row, from one value a repetition; no values: it could not be measured, and note says why."""
        row = {"section": self._section, "name": name, "unit": unit, "repetitions": len(values), "values": values,
               "median": None, "min": None, "max": None, "limit": limit, "limit_kind": None, "holds": None,
               "note": note}
        if values:
            row.update(median=statistics.median(values), min=min(values), max=max(values))
        if limit is not None:
            row["limit_kind"] = kind
            if values:
                row["holds"] = row["median"] <= limit if kind == AT_MOST else row["median"] >= limit
        self.rows.append(row)
        self._print(row)

    def _print(self, row):
        mark = {True: "holds", False: "MISSED", None: ""}[row["holds"]]
        limit = "" if row["limit"] is None else "%s %s" % (row["limit_kind"], figure(row["limit"]))
        line = COLUMNS % (row["name"], figure(row["median"]), figure(row["min"]), figure(row["max"]),
                          row["repetitions"] or "-", row["unit"], limit, "; ".join(filter(None, (mark, row["note"]))))
        print(line.rstrip(), flush=True)

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "quick": self.quick, "about": self.about, "rows": self.rows}, file, indent=1)
            file.write("\n")

    def close(self):
        limited = [row for row in self.rows if row["holds"] is not None]
        missed = [row["name"] for row in limited if not row["holds"]]
        print("\n%d of %d limits hold%s" % (len(limited) - len(missed), len(limited),
                                            "".join("\n  missed: " + name for name in missed)))
        if self.quick:
            print("--quick shows that the benchmarks work; its figures mean nothing.")
