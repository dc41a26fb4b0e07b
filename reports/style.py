"""The page's style: for phones, screens and paper, light and dark, and for colour-blind readers
(blue, vermilion and amber by Okabe and Ito, and a sign beside each verdict)."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #57606a; --paper: #fff; --line: #d1d9e0;
  --soft: #f6f8fa; --good: #005a8d; --bad: #b34700; --open: #7a5b00; --none: #57606a; --grid:
  #e4e8ec;
  --c0: #0072b2; --c1: #d55e00; --c2: #007a59; --c3: #b0508a; --c4: #b57b00; --c5: #3a93c4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117;
  --line: #3d444d; --soft: #151b23; --good: #6cb6ff; --bad: #ff8f57; --open: #e3b341;
  --none: #9198a1; --grid: #262c34; --c0: #58a6e0; --c1: #ff8a3d; --c2: #3fc79a; --c3: #e39cc4;
  --c4: #f0b429; --c5: #8ccdf2; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1180px; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem;
  border-top: 1px solid var(--line); padding-top: 1rem; } h3 { font-size: 1rem; margin: 1.2rem 0
  .3rem; }
h1.run { margin-top: 3.5rem; border-top: 3px solid var(--line); padding-top: 1rem; }
p.note { color: var(--faint); margin: .2rem 0 1rem; } a { color: inherit; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal; } th { color: var(--faint); font-weight: 500; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
b.verdict { white-space: nowrap; } .survived { color: var(--good); } .falsified { color:
  var(--bad); }
.inconclusive { color: var(--open); } .not_tested { color: var(--none); font-weight: 400; }
table.verdicts { width: 100%; } table.verdicts td:nth-child(4) { min-width: 15rem; }
table.verdicts td:nth-child(2) { min-width: 9rem; } table.verdicts td:nth-child(5) {
  min-width: 7rem; } table.verdicts td:nth-child(6) { white-space: nowrap; }
@media (min-width: 701px) { table.saboteurs b { font-weight: 400; } }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .15rem .8rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; min-width: 0; }
code, pre { font: .87em/1.5 ui-monospace, monospace; background: var(--soft); }
pre { padding: .6rem .8rem; white-space: pre-wrap; border-radius: 4px; }
ul.examples { background: var(--soft); border-left: 3px solid var(--bad); padding: .6rem 1.8rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr));
  gap: .8rem; margin: .6rem 0; } .figures svg { width: 100%; height: auto; border: 1px solid
  var(--line);
  border-radius: 4px; break-inside: avoid; }
details { margin: .6rem 0; } details > summary { cursor: pointer; color: var(--faint); }
svg text { font: 10.5px system-ui, sans-serif; fill: var(--faint); } svg text.h { fill: var(--ink);
  font-size: 11.5px; } svg text.w { fill: var(--ink); font-size: 9.5px;
  paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .g { stroke: var(--grid); fill: none; } svg .l { fill: none; stroke-width: 1.6; }
svg .d { fill: none; stroke-width: 3.2; stroke-linecap: round; stroke-opacity: .75; }
svg .b { fill: none; stroke-width: 5; } svg .t { stroke: var(--ink); stroke-dasharray: 5 3; }
svg .r { stroke: var(--faint); stroke-dasharray: 1 3; } svg.axis { display: block; margin-top:
  .2rem; }
svg.axis .past { fill: var(--bad); fill-opacity: .13; } svg.axis .base { stroke: var(--line); }
svg.axis .hold { stroke: currentColor; stroke-width: 3; } svg.axis .at { fill: currentColor; }
svg.axis .edge { stroke: var(--ink); stroke-width: 1.5; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); }
.f4 { fill: var(--c4); } .f5 { fill: var(--c5); }
@media (max-width: 700px) { body { padding: .8rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dt { margin-top: .4rem; } table.stacked, table.stacked tbody, table.stacked tr,
  table.stacked td { display: block; border: 0; padding: .05rem 0;
  overflow-wrap: anywhere; } table.stacked th {
  display: none; }
  table.stacked tr { border-bottom: 1px solid var(--line); padding: .6rem 0; }
  table.stacked td:empty { display: none; }
  table.stacked td[data-label]::before { content: attr(data-label) ": "; color: var(--faint); } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } h2, h3, tr:first-child {
  break-after: avoid; } details:not([open]) { display: none; } tr, dl, .figures svg {
  break-inside: avoid; } .wide { overflow: visible; } .figures { grid-template-columns: 1fr 1fr; } }
"""

# A figure in its own file has the same colours.
ALONE = "svg { background: var(--paper); }" + STYLE
