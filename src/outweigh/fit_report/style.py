"""The look of the page, and the few lines that sort its tables."""

from __future__ import annotations

import base64
import hashlib

__all__ = ["PAGE", "SCRIPT", "SCRIPT_HASH", "STYLE"]

STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#5a5a5a;--paper:#fff;--line:#ddd;--good:#e7f4ea;
--good-edge:#2e7d43;--care:#fdf1dd;--care-edge:#b26a00}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a8a8a8;--paper:#161616;
--line:#383838;--good:#16301d;--good-edge:#5fb878;--care:#38290f;--care-edge:#e0a243}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.25rem 0}h2{font-size:1.15rem;margin:0 0 .5rem}
.source,.note,caption,.soft{color:var(--soft)}.source{margin:0 0 1rem;font-size:.9rem}
.verdict{border-left:.4rem solid var(--good-edge);background:var(--good);padding:.75rem 1rem;
border-radius:0 .4rem .4rem 0}
.verdict.care{border-color:var(--care-edge);background:var(--care)}
.verdict strong{font-size:1.15rem;display:block}.verdict p{margin:.35rem 0 0}
.facts{display:flex;flex-wrap:wrap;gap:.5rem 2rem;list-style:none;margin:1rem 0 0;padding:0}
.facts b{font-size:1.2rem;display:block;line-height:1.2}
.facts span{color:var(--soft);font-size:.9rem}
section{border-top:1px solid var(--line);padding:1.1rem 0;margin-top:1.1rem}
.pictures{columns:2 24rem;column-gap:1rem}
figure{margin:0 0 1rem;background:#fff;border:1px solid var(--line);border-radius:.4rem;
padding:.5rem;color:#1b1b1b;break-inside:avoid}
img{width:100%;height:auto;display:block}figcaption{font-size:.85rem;color:#5a5a5a;padding:.25rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;width:100%}
caption{text-align:left;padding-bottom:.4rem}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.name{min-width:5rem;max-width:18rem}td.why{min-width:15rem}
thead th{position:sticky;top:0;background:var(--paper)}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid var(--care-edge)}
th button::after{content:" \\2195";color:var(--soft);font-weight:400}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
.why span{display:inline-block;margin-right:1rem;white-space:normal}
.why b{font-variant-numeric:tabular-nums}.why small{color:var(--soft);font-size:inherit}
code,pre{font:.85rem/1.45 ui-monospace,monospace}
pre{overflow-x:auto;background:color-mix(in srgb,var(--line) 35%,transparent);padding:.6rem .8rem;
border-radius:.4rem;white-space:pre-wrap}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));gap:0 2rem;
align-items:start}
@media (max-width:34rem){#distrusted tr{display:grid;grid-template-columns:1fr 5.5rem 5.5rem;
border-bottom:1px solid var(--line)}#distrusted th,#distrusted td{border:0;padding:.25rem .2rem}
#distrusted td.why,#distrusted th:last-child{grid-column:1/-1;min-width:0;padding-top:0}
#distrusted th:last-child{display:none}}
@media print{:root{color-scheme:light}body{max-width:none;font-size:9.5pt;padding:0}
.verdict,figure,pre{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.pictures{columns:2;column-gap:.6rem}figure{margin-bottom:.6rem;padding:.3rem}
.facts{gap:.3rem 1.5rem}section{padding:.6rem 0;margin-top:.6rem}
table{font-size:8.5pt}th,td{padding:.2rem .4rem}
th button::after{content:""!important}.scroll{overflow:visible}thead th{position:static}
tr,figure,.verdict,.facts{break-inside:avoid}h2{break-after:avoid}}
"""

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => {
        const cell = row.cells[column];
        return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
      };
      const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
        : String(a).localeCompare(String(b), undefined, {numeric: true});
      const rows = [...body.rows].sort((a, b) => compare(key(a), key(b)));
      body.append(...(up ? rows : rows.reverse()));
    });
  });
}
"""

SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode("ascii")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{hash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{heading}</h1>
<p class="source">{source}</p></header>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""
