"""One self-contained HTML page from summaries: panels, tables, versions, failures.

Images are embedded and nothing is loaded from elsewhere, so that the file can be sent, kept and
opened without a network. Everything that is not markup is escaped.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.summary import Cell, Defeat, Summary, defeats


def build_report(summaries: Sequence[Summary], images: Mapping[str, bytes]) -> str:
    """Return the page.

    Parameters
    ----------
    summaries : sequence of Summary
    images : mapping
        The PNG of each experiment, under its name; one without an image is shown as tables only.

    Returns
    -------
    str
        An HTML document.
    """
    lost = [defeat for summary in summaries for defeat in defeats(summary)]
    sections = [
        _overview(summaries, lost),
        *(_panel(summary, images.get(summary.experiment.name)) for summary in summaries),
        _defeats(lost),
        _failures(summaries),
        _versions(summaries),
    ]
    return _PAGE.format(
        style=_STYLE,
        contents="".join(
            f'<a href="#{_text(s.experiment.name)}">{_text(s.experiment.title)}</a>'
            for s in summaries
        ),
        body="\n".join(sections),
    )


def _overview(summaries: Sequence[Summary], lost: Sequence[Defeat]) -> str:
    n_done = sum(cell.n_done for summary in summaries for cell in summary.cells)
    n_failed = sum(len(summary.failures) for summary in summaries)
    n_missing = sum(summary.n_missing for summary in summaries)
    n_outside = len({(d.experiment, d.x) for d in lost if d.outside})
    n_points = sum(len(summary.xs) for summary in summaries)
    facts = [
        (f"{len(summaries)}", "panels"),
        (f"{n_done}", "runs done"),
        (f"{n_failed}", "runs failed"),
        (f"{n_missing}", "runs missing"),
        (f"{n_outside} of {n_points}", "points where a rival is better beyond the quartiles"),
    ]
    items = "".join(
        f"<li><strong>{_text(number)}</strong> <span>{_text(name)}</span></li>"
        for number, name in facts
    )
    return f'<section id="overview"><ul class="facts">{items}</ul></section>'


def _panel(summary: Summary, image: bytes | None) -> str:
    experiment = summary.experiment
    name = _text(experiment.name)
    source = f'<p class="source">{_text(experiment.source)}</p>' if experiment.source else ""
    missing = (
        f'<p class="note">{summary.n_missing} runs of this panel are not done yet.</p>'
        if summary.n_missing
        else ""
    )
    warned = "".join(
        f'<p class="note">{_text(ALGORITHMS[who].label)}: {count} runs gave a warning.</p>'
        for who, count in summary.warned.items()
    )
    return f"""<section id="{name}" class="panel">
<h2>{_text(experiment.title)}</h2>{source}
<p>{_text(experiment.about)}</p>
{_figure(experiment.title, image)}
{missing}{warned}
{_table("Error: median (lower to upper quartile)", summary, _error)}
<details><summary>Time and memory</summary>
{_table("Median time of a fit, seconds", summary, lambda cell: _number(cell.seconds))}
{_table("Median peak memory of a fit beyond the data, MB", summary, _memory)}
</details>
</section>"""


def _figure(title: str, image: bytes | None) -> str:
    if image is None:
        return '<p class="note">No figure: nothing to draw, or matplotlib is not installed.</p>'
    data = base64.b64encode(image).decode("ascii")
    alt = _text(f"{title}: error of each algorithm; the numbers are in the table below")
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"></figure>'


def _table(caption: str, summary: Summary, show: Callable[[Cell], str]) -> str:
    """Lay the cells out with one row for each algorithm and one column for each point."""
    experiment = summary.experiment
    head = "".join(f'<th scope="col">{_number(x)}</th>' for x in summary.xs)
    rows = []
    for name in experiment.algorithms:
        algorithm = ALGORITHMS[name]
        cells = "".join(f"<td>{show(summary.cell(x, name))}</td>" for x in summary.xs)
        kind = ' class="ours"' if algorithm.ours else ""
        rows.append(
            f'<tr{kind}><th scope="row"><i style="background:{_text(algorithm.colour)}"></i>'
            f"{_text(algorithm.label)}</th>{cells}</tr>"
        )
    return (
        f'<div class="scroll"><table><caption>{_text(caption)}</caption><thead><tr>'
        f'<th scope="col">{_text(experiment.parameter)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _error(cell: Cell) -> str:
    failed = f' <em class="failed">{cell.n_failed} failed</em>' if cell.n_failed else ""
    if not cell.n_done:
        return failed or "&ndash;"
    spread = f"{cell.lower:.3f}&ndash;{cell.upper:.3f}"
    return f"<b>{cell.median:.3f}</b> <small>{spread}</small>{failed}"


def _memory(cell: Cell) -> str:
    return "&ndash;" if math.isnan(cell.peak_memory_mb) else f"{cell.peak_memory_mb:.0f}"


def _number(value: float) -> str:
    return (
        "&ndash;" if math.isnan(value) else _text(f"{value:.3g}" if value < 1000 else f"{value:g}")
    )


def _defeats(lost: Sequence[Defeat]) -> str:
    if not lost:
        text = "At no point is the median error of a rival below ours."
        return f'<section id="defeats"><h2>Where a rival is better</h2><p>{text}</p></section>'
    rows = _rows(
        (
            defeat.experiment,
            f"{defeat.x:g}",
            ALGORITHMS[defeat.rival].label,
            f"{defeat.rival_median:.3f}",
            f"{defeat.our_median:.3f}",
            "no" if defeat.outside else "yes",
        )
        for defeat in lost
    )
    return f"""<section id="defeats"><h2>Where a rival is better</h2>
<p>Every point at which the median error of an algorithm that is told no more than ours is below
ours, and whether the difference is within our quartiles.</p>
<div class="scroll"><table><thead><tr><th>Panel</th><th>At</th><th>Rival</th><th>Its median</th>
<th>Ours</th><th>Within quartiles</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _failures(summaries: Sequence[Summary]) -> str:
    failed = [record for summary in summaries for record in summary.failures]
    if not failed:
        return '<section id="failures"><h2>Failures</h2><p>No run failed.</p></section>'
    rows = _rows(
        (
            str(record["experiment"]),
            f"{record['x']:g}",
            str(record["algorithm"]),
            str(record["trial"]),
            str(record["seed"]),
            str(record["failure"]),
        )
        for record in failed
    )
    return f"""<section id="failures"><h2>Failures</h2>
<div class="scroll"><table><thead><tr><th>Panel</th><th>At</th><th>Algorithm</th><th>Trial</th>
<th>Seed</th><th>What happened</th></tr></thead><tbody>{rows}</tbody></table></div></section>"""


def _versions(summaries: Sequence[Summary]) -> str:
    found: list[dict[str, str]] = []
    for summary in summaries:
        found += [versions for versions in summary.versions if versions not in found]
    lists = "".join(
        "<p>" + ", ".join(f"{_text(k)} {_text(v)}" for k, v in versions.items()) + "</p>"
        for versions in found
    )
    several = '<p class="note">The records are of different versions.</p>' if len(found) > 1 else ""
    return f'<section id="versions"><h2>Versions</h2>{several}{lists}</section>'


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )


def _text(text: str) -> str:
    return escape(text, quote=True)


_STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#5a5a5a;--paper:#fff;--line:#ddd;--ours:#eaf3fa}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8a8a8;--paper:#161616;--line:#383838;
--ours:#14283a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:0 0 .25rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:1rem 0}nav a{color:inherit}
section{border-top:1px solid var(--line);padding:1.25rem 0}
.facts{display:flex;flex-wrap:wrap;gap:.75rem 2rem;list-style:none;margin:0;padding:0}
.facts strong{font-size:1.3rem}.facts span,.source,.note,caption,small{color:var(--soft)}
.source{margin:0;font-size:.9rem}.note{font-size:.9rem}
figure{margin:1rem 0;background:#fff;border-radius:6px;padding:.5rem;text-align:center}
img{max-width:100%;width:34rem;height:auto}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.85rem;min-width:100%}
caption{text-align:left;padding-bottom:.25rem}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
tbody th{font-weight:400;white-space:nowrap}
tr.ours,tr.ours th:first-child{background:var(--ours)}tr.ours th{font-weight:600}
tbody th i{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.5em}
small{display:block;white-space:nowrap}.failed{color:#c0392b;font-style:normal;display:block}
details summary{cursor:pointer;padding:.5rem 0}
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>outweigh: experiments</title>
<style>{style}</style>
</head>
<body>
<header><h1>outweigh: experiments</h1>
<p>Medians over the trials, with quartiles. Every algorithm saw the same samples and was told the
contamination and the sparsity where it has a use for them; times are of the fit alone, on one
thread.</p>
<nav>{contents}</nav></header>
<main>
{body}
</main>
</body>
</html>
"""
