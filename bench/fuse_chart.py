"""What bench/compare_torch.py measured as a table, as figures against their bars and as an SVG chart."""
import math

THEIRS = ["eager", "compile", "max_autotune", "triton"]
WAYS = ["unfused", "fused"] + THEIRS
TITLES = {"unfused": "ours, operators one by one", "fused": "ours, fused", "eager": "PyTorch eager",
          "compile": "torch.compile", "max_autotune": "torch.compile, max-autotune", "triton": "Triton, by hand",
          "best": "the fastest of theirs"}
BARS = {"geomean": 1.3, "least": 0.98}


def table(rows):
    head = ["problem", "roof", "roof us"] + ["fused us"] + [f"{w} %" for w in WAYS] + ["vs compile", "vs best", "right"]
    lines = [head]
    for r in rows:
        if "error" in r:
            lines.append([r["name"], "", "", ""] + [""] * len(WAYS) + ["", "", r["error"][:60]])
            continue
        wrong = [w for w, c in r["checks"].items() if not c["right"]]
        number = lambda v, f: "-" if v is None else format(v, f)
        shares = {w: 100 * s for w, s in r["share_of_roof"].items()}
        lines.append([r["name"], r["roof"], number(r["roof_us"], ".1f"),
                      number(r["time_us"].get("fused"), ".1f")]
                     + [number(shares.get(w), ".1f") for w in WAYS]
                     + [number(r["times_of"].get(w), ".3f") for w in ("compile", "best")]
                     + ["all" if not wrong else "NOT " + ", ".join(wrong)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    left = {0, 1, len(head) - 1}
    return "\n".join("  ".join(c.ljust(w) if i in left else c.rjust(w)
                               for i, (c, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def figures(rows):
    """Their time over ours in the geometric mean of all problems that both ran, and the least, for each of theirs."""
    out = {}
    for way in THEIRS + ["best"]:
        ratios = [(r["times_of"][way], r["name"]) for r in rows if way in r.get("times_of", {})]
        if ratios:
            least = min(ratios)
            out[way] = {"problems": len(ratios), "least": least[0], "min_of": least[1],
                        "geomean": math.exp(sum(math.log(v) for v, _ in ratios) / len(ratios))}
    return out


COLORS = {"unfused": "#8c9bb5", "fused": "#1f77d0", "eager": "#d9a441", "compile": "#d1603d",
          "max_autotune": "#8e4a9c", "triton": "#6a9f58"}


def svg(rows, title):
    rows = [r for r in rows if "error" not in r]
    bar, gap, left, wide, top = 9, 12, 210, 560, 76
    heights = [bar * len([w for w in WAYS if w in r["share_of_roof"]]) + gap for r in rows]
    height = top + sum(heights) + 30
    most = 1.1
    x = lambda share: left + wide * min(share, most) / most
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 90} {height}" '
           f'width="{left + wide + 90}" height="{height}" font-family="sans-serif" font-size="11">',
           "<style>text{fill:#333}line{stroke:#8888;stroke-width:1}"
           "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
           f'<text x="10" y="20" font-size="14">{title}</text>',
           '<text x="10" y="37">share of the bandwidth of a copy (sums and maxima: of reads) at as many '
           'bytes; longer is faster</text>']
    at = 10
    for way in WAYS:
        out.append(f'<rect x="{at}" y="48" width="10" height="10" fill="{COLORS[way]}"/>'
                   f'<text x="{at + 14}" y="57">{TITLES[way]}</text>')
        at += 30 + 6.2 * len(TITLES[way])
    for tick in range(0, 11, 2):
        px = x(tick / 10)
        out.append(f'<line x1="{px:.1f}" y1="{top - 4}" x2="{px:.1f}" y2="{height - 22}"/>'
                   f'<text x="{px:.1f}" y="{height - 8}" text-anchor="middle">{tick * 10} %</text>')
    y = top
    for r, tall in zip(rows, heights):
        ways = [w for w in WAYS if w in r["share_of_roof"]]
        out.append(f'<text x="{left - 8}" y="{y + bar * len(ways) / 2 + 4:.1f}" text-anchor="end">'
                   f'{r["name"]}</text>')
        for way in ways:
            share = r["share_of_roof"][way]
            out.append(f'<rect x="{left}" y="{y}" width="{x(share) - left:.1f}" height="{bar - 1}" '
                       f'fill="{COLORS[way]}"><title>{r["name"]}, {TITLES[way]}: {100 * share:.1f} %, '
                       f'{r["time_us"][way]:.1f} us</title></rect>'
                       f'<text x="{x(share) + 3:.1f}" y="{y + bar - 1.5}" font-size="8">'
                       f'{100 * share:.0f}</text>')
            y += bar
        y += gap
    return "\n".join(out) + "\n</svg>\n"


def told(rows, total, result):
    """The lines below the table, and whether a bar is missed."""
    missed, lines = "compile" not in total, ["", "their time over ours within rounds, over all problems that both ran:"]
    for way, f in total.items():
        lines.append(f"  {TITLES[way]:28} {f['problems']:3} problems  geometric mean {f['geomean']:.3f}  "
                     f"least {f['least']:.3f} ({f['min_of']})")
    for key, bar in BARS.items():
        ok = "compile" in total and total["compile"][key] >= bar
        missed |= not ok
        lines.append(f"  bar: {key} against torch.compile {bar}  {'OK' if ok else 'MISSED'}")
    for line in sorted({f"{way}: {why}" for r in rows for way, why in r.get("absent", {}).items()}):
        lines.append(f"  absent  {line}")
    lines.append(f"  {result['gpu']}, torch {result['torch']}, triton {result['triton']}, "
                 f"{result['seconds']:.0f} s")
    return lines, missed
