#!/usr/bin/env python3
"""Recorded documents of `measure ways` and `sweep mlp` on one table: bench/ways/table.py [--markdown] FILE..."""

import json
import sys

IDS = ("manual", "operator", "compiled", "triton", "cuda", "derived")


def time_text(us):
    return "-" if us is None else f"{us:.4g}"


def cell(way):
    if way["absent"]:
        return "absent"
    if way["right"] is False:
        return "wrong"
    return time_text(way["time_us"])


def ways_rows(documents):
    rows = [["us a call", "possible", "predicted", *IDS, "others' best / ours", "kernels"]]
    for d in documents:
        by_id = {way["id"]: way for way in d["ways"]}
        times = {name: way["time_us"] for name, way in by_id.items() if way["right"] and way["time_us"]}
        others = [us for name, us in times.items() if name != "derived"]
        ratio = f"{min(others) / times['derived']:.3f}" if others and "derived" in times else "-"
        kernels = " ".join(f"{way['launches']:.0f}" if way["launches"] else "-" for way in d["ways"])
        p = d["prediction"]
        row = [f"{d['operator']} {d['shape']}", time_text(p["possible_us"]), time_text(p["predicted_us"])]
        rows.append([*row, *(cell(by_id[name]) for name in IDS), ratio, kernels])
    return rows


def mlp_rows(document, curve):
    rows = [[f"MLP over {curve['parameter']}", "us a step", "in kernels", "host", "predicted", "error", "bound by"]]
    for p in curve["points"]:
        error = f"{100 * (p['predicted_us'] / p['step_us'] - 1):+.1f} %" if p["step_us"] and p["predicted_us"] else "-"
        bound = "-" if p["host_bound"] is None else "host" if p["host_bound"] else "device"
        times = (time_text(p[key]) for key in ("step_us", "kernel_us", "host_us", "predicted_us"))
        rows.append([str(p[curve["parameter"]]), *times, error, bound])
    return rows


def show(rows, markdown):
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|---|" + "--:|" * (len(rows[0]) - 1))
    else:
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:]))]) for row in rows]
    print("\n".join(lines) + "\n")


def main():
    markdown = "--markdown" in sys.argv
    documents = [json.load(open(name, encoding="utf-8")) for name in sys.argv[1:] if name != "--markdown"]
    for document in documents:
        for curve in document.get("curves", ()):
            show(mlp_rows(document, curve), markdown)
            for change in curve["changes"]:
                reasons = "; ".join(reason["text"] for reason in change["reasons"]) or "why is not known"
                growth = f"{change['growth']:.3g} times the time for {change['work_growth']:.3g} times the work"
                print(f"  {change['from']} -> {change['to']}: {growth}{', a jump' if change['jump'] else ''}: {reasons}")
    ways = [document for document in documents if document["schema"] == "rooftile/ways/1"]
    if ways:
        show(ways_rows(ways), markdown)
        for document in ways:
            for way in document["ways"]:
                if way["absent"] or way["right"] is False:
                    print(f"  {document['operator']}, {way['name']}: {way['absent'] or 'wrong by ' + str(way['error'])}")


if __name__ == "__main__":
    main()
