"""What bench/compare_torch.py measured as a table, as figures against their bars and as an SVG chart."""
import math

WAYS = ["unfused", "fused", "eager", "compile", "triton"]
TITLES = {"unfused": "ours, operators one by one", "fused": "ours, fused", "eager": "PyTorch eager",
          "compile": "torch.compile", "triton": "Triton, by hand"}
BARS = {"geomean": 1.3, "least": 0.98}


def table(rows):
    head = ["problem", "roof", "roof us"] + ["fused us"] + [f"{w} %" for w in WAYS] + ["vs compile", "right"]
    lines = [head]
    for r in rows:
        if "error" in r:
            lines.append([r["name"], "", "", ""] + [""] * len(WAYS) + ["", r["error"][:60]])
            continue
        wrong = [w for w, c in r["checks"].items() if not c["right"]]
        number = lambda v, f: "-" if v is None else format(v, f)
        shares = {w: 100 * s for w, s in r["share_of_roof"].items()}
        lines.append([r["name"], r["roof"], number(r["roof_us"], ".1f"),
                      number(r["time_us"].get("fused"), ".1f")]
                     + [number(shares.get(w), ".1f") for w in WAYS]
                     + [number(r["times_of_compile"], ".3f"),
                        "all" if not wrong else "NOT " + ", ".join(wrong)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    left = {0, 1, len(head) - 1}
    return "\n".join("  ".join(c.ljust(w) if i in left else c.rjust(w)
                               for i, (c, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def figures(rows):
    """Against torch.compile, where a copy is the roof: the bars speak of kernels that read and write."""
    ratios = [(r["times_of_compile"], r["name"]) for r in rows
              if r.get("times_of_compile") and r["roof"] == "copy"]
    if not ratios:
        return None
    least = min(ratios)
    return {"problems": len(ratios), "geomean": math.exp(sum(math.log(v) for v, _ in ratios) / len(ratios)),
            "least": least[0], "min_of": least[1]}


COLORS = {"unfused": "#8c9bb5", "fused": "#1f77d0", "eager": "#d9a441", "compile": "#d1603d",
          "triton": "#6a9f58"}


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
    missed, lines = False, [""]
    if total:
        lines.append(f"against torch.compile over {total['problems']} problems, times as fast within rounds:")
        for key, of in (("geomean", ""), ("least", f" ({total['min_of']})")):
            ok = total[key] >= BARS[key]
            missed |= not ok
            lines.append(f"  {key:8} {total[key]:.3f}  wanted {BARS[key]}  {'OK' if ok else 'MISSED'}{of}")
    else:
        missed = True
        lines.append("nothing ran under torch.compile")
    for line in sorted({f"{way}: {why}" for r in rows for way, why in r.get("absent", {}).items()}):
        lines.append(f"  absent  {line}")
    lines.append(f"  {result['gpu']}, torch {result['torch']}, triton {result['triton']}, "
                 f"{result['seconds']:.0f} s")
    return lines, missed
