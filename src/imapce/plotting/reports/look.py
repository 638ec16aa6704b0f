"""How the pages look: light and dark, wide and narrow, on screen and on paper."""

from __future__ import annotations

STYLE = """
:root { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d9dee4; --card: #f6f8fa; --link: #0a5cad;
  --inside: #2f7ebc; --outside: #9aa4ae; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --ink: #e6e9ed; --soft: #a3adb8; --line: #343b44; --card: #1d2228;
    --link: #7db8f5; --inside: #5aa5e0; --outside: #77828d; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 16px; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.6; overflow-wrap: break-word;
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 48px 24px 96px; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 16px; }
h2 { font-size: 1.35rem; line-height: 1.3; letter-spacing: -0.01em; margin: 0 0 12px; }
h3 { font-size: 1rem; line-height: 1.3; margin: 28px 0 8px; }
p { margin: 0 0 14px; max-width: 44em; }
p.lead { font-size: 1.12rem; line-height: 1.45; margin-bottom: 16px; }
a { color: var(--link); }
section { margin-top: 40px; padding-top: 32px; border-top: 1px solid var(--line); }
.summary { color: var(--soft); font-size: 1.1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(148px, 1fr)); gap: 12px;
  margin: 24px 0 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px;
  min-width: 0; }
dt { color: var(--soft); font-size: 0.82rem; }
dd { margin: 2px 0 0; font-weight: 600; font-variant-numeric: tabular-nums; }
nav { margin-top: 28px; }
nav ol { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 6px 8px; font-size: 0.9rem; }
nav a { display: block; padding: 3px 11px; border: 1px solid var(--line); border-radius: 99px;
  background: var(--card); text-decoration: none; }
nav a:hover { border-color: var(--link); }
.dot { display: inline-block; width: 0.72em; height: 0.72em; border-radius: 50%; margin-right: 0.5em;
  border: 1px solid rgba(255, 255, 255, 0.35); }
h2 .dot { width: 0.8em; height: 0.8em; }
figure { margin: 20px 0; }
.plot { position: relative; background: #ffffff; border: 1px solid var(--line); border-radius: 12px; padding: 10px; }
.plot[data-picture] img { cursor: crosshair; }
img { display: block; width: 100%; height: auto; }
.ring { display: none; position: absolute; width: 15px; height: 15px; margin: -7.5px 0 0 -7.5px; border-radius: 50%;
  border: 2px solid #1f2328; box-shadow: 0 0 0 1.5px #ffffff; pointer-events: none; }
.card { display: none; position: fixed; z-index: 9; max-width: 320px; padding: 8px 12px; border-radius: 9px;
  background: #1f2328; color: #ffffff; font-size: 0.82rem; line-height: 1.45; pointer-events: none;
  box-shadow: 0 4px 18px rgba(0, 0, 0, 0.28), 0 0 0 1px rgba(255, 255, 255, 0.16); }
.card span { color: #b9c2cc; }
.card b { font-weight: 600; }
figcaption { color: var(--soft); font-size: 0.9rem; margin-top: 8px; }
.table { overflow-x: auto; margin: 12px 0 20px; border: 1px solid var(--line); border-radius: 12px; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; line-height: 1.45; }
th, td { text-align: left; padding: 8px 13px; border-bottom: 1px solid var(--line); overflow-wrap: normal;
  vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
th { background: var(--card); font-weight: 600; vertical-align: bottom; }
td > div { white-space: nowrap; height: 1.45em; }
td a { text-decoration: none; white-space: nowrap; }
.compact table { font-size: 0.8rem; }
.compact th, .compact td { padding: 4px 9px; white-space: nowrap; text-align: right;
  font-variant-numeric: tabular-nums; }
.compact th:first-child, .compact td:first-child { position: sticky; left: 0; text-align: left;
  background: var(--page); box-shadow: 1px 0 0 var(--line); }
.compact th:first-child { background: var(--card); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.share { display: inline-block; width: 132px; vertical-align: middle; }
.share i { display: block; height: 5px; min-width: 1px; border-radius: 1px; background: var(--inside); }
.share i.other { background: var(--outside); margin-top: 2px; }
.histogram { display: block; width: 132px; }
.histogram svg { display: block; width: 132px; height: auto; }
.histogram path { fill: var(--inside); }
.histogram path.other { fill: none; stroke: var(--outside); stroke-width: 1.6; }
.histogram small { display: flex; justify-content: space-between; color: var(--soft); font-size: 0.72rem;
  line-height: 1.2; }
.key { color: var(--soft); font-size: 0.86rem; margin: 0; }
.key i { display: inline-block; width: 18px; height: 7px; margin: 0 5px 1px 0; border-radius: 1px;
  background: var(--inside); }
.key i.other { background: var(--outside); margin-left: 16px; }
@media (max-width: 960px) {
  th, td { padding: 8px 9px; }
  .share, .histogram, .histogram svg { width: 104px; }
}
@media (max-width: 600px) {
  main { padding: 28px 16px 64px; }
  h1 { font-size: 1.6rem; }
  .plot { padding: 4px; border-radius: 8px; }
}
@media print {
  :root { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d9dee4; --card: #f6f8fa; --link: #1f2328;
    --inside: #2f7ebc; --outside: #9aa4ae; }
  html { font-size: 11px; }
  body { font-size: 12px; }
  main { max-width: none; padding: 0; }
  nav, .card, .ring { display: none !important; }
  section { margin-top: 18px; padding-top: 14px; }
  h2, h3 { break-after: avoid; }
  figure, tr, .facts div { break-inside: avoid; }
  .table { overflow: visible; }
  th, td { padding: 4px 6px; }
  i, path, .dot { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""
