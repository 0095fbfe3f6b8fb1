"""Horizontal bars as SVG, nothing else: bars(title, unit, groups) where groups is [(label, [(name, value)])]."""

from xml.sax.saxutils import escape

COLOURS = ["#2f6db3", "#d9822b", "#4a9d5b", "#b04a5a", "#7a5fae", "#8a8a3a", "#4aa3a8", "#a0674a", "#777777"]
BAR, GAP, LEFT, WIDTH, RIGHT, TOP = 15, 12, 190, 520, 70, 64


def bars(title, unit, groups, mark=None):
    """`mark` is a value at which a dashed line stands, as (value, label)."""
    names = []
    for _, items in groups:
        names += [n for n, _ in items if n not in names]
    most = max([v for _, items in groups for _, v in items] + ([mark[0]] if mark else []) + [1e-9])
    height = TOP + sum(len(items) * BAR + GAP for _, items in groups) + 30
    total = LEFT + WIDTH + RIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}" viewBox="0 0 {total} {height}" '
           f'font-family="sans-serif" font-size="12">',
           f'<rect width="{total}" height="{height}" fill="white"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{escape(title)}</text>']
    x = 12
    for i, name in enumerate(names):
        out.append(f'<rect x="{x}" y="34" width="11" height="11" fill="{COLOURS[i % len(COLOURS)]}"/>')
        out.append(f'<text x="{x + 15}" y="44">{escape(name)}</text>')
        x += 30 + 7 * len(name)
    y = TOP
    for label, items in groups:
        middle = y + len(items) * BAR / 2 + 4
        out.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(label)}</text>')
        for name, value in items:
            width = WIDTH * value / most
            out.append(f'<rect x="{LEFT}" y="{y + 1}" width="{width:.1f}" height="{BAR - 2}" fill="{COLOURS[names.index(name) % len(COLOURS)]}"/>')
            out.append(f'<text x="{LEFT + width + 4:.1f}" y="{y + BAR - 4}" font-size="10">{value:.4g}</text>')
            y += BAR
        y += GAP
    if mark:
        at = LEFT + WIDTH * mark[0] / most
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{y}" stroke="#444" stroke-dasharray="4 3"/>')
        out.append(f'<text x="{at:.1f}" y="{TOP - 9}" text-anchor="middle" font-size="10">{escape(mark[1])}</text>')
    out.append(f'<text x="{LEFT}" y="{y + 14}" font-size="11" fill="#555">{escape(unit)}</text>')
    return "\n".join(out) + "\n</svg>\n"
