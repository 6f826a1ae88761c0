"""The style sheet of a certificate's page: on screens narrow and wide, light and dark, and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #1d2328; --quiet: #57616a; --line: #d9d6cf; --edge: #75808a;
  --strong: #1f5a4a; --tint: #f3f1ec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15191c; --ink: #e7e9ea; --quiet: #a5afb7; --line: #353c42; --edge: #88939c;
    --strong: #8fcdb8; --tint: #1d2226;
  }
}
* { box-sizing: border-box; }
html { background: var(--paper); -webkit-text-size-adjust: 100%; }
body {
  max-width: 70rem; margin: 0 auto; padding: 4.5rem 1.5rem 6rem; color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
}
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h1, .lead {
  font-family: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, "Noto Serif", "Liberation Serif", serif;
}
h1 { margin: 0 0 1rem; font-size: 2.5rem; font-weight: 600; letter-spacing: -.01em; }
h2 { margin: 0 0 1rem; font-size: 1.125rem; font-weight: 650; }
h3 { margin: 2rem 0 .5rem; font-size: 1rem; font-weight: 650; }
p { max-width: 42rem; margin: 0 0 1rem; text-wrap: pretty; }
ul { margin: 0 0 1rem; padding-left: 1.2rem; font-size: .875rem; columns: 22rem 2; column-gap: 3rem; }
li { margin-bottom: .35rem; break-inside: avoid; }
section, details { margin-top: 2.5rem; padding-top: 2rem; border-top: 1px solid var(--line); }
.lead { max-width: 48rem; margin-bottom: 1.5rem; font-size: 1.375rem; line-height: 1.5; }
.lead strong { font-weight: 650; }
.note, dt, caption { color: var(--quiet); font-size: .875rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: .875em; }
code { overflow-wrap: anywhere; }
pre {
  margin: 0 0 1rem; padding: .75rem 1rem; background: var(--tint); border-left: 3px solid var(--edge);
  white-space: pre-wrap; overflow-wrap: anywhere;
}
dl { margin: 0 0 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.facts > div { padding: .3rem 0; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 3rem; margin-bottom: 1.5rem; }
.figures dd { font-size: 1.5rem; font-weight: 600; line-height: 1.3; font-variant-numeric: tabular-nums; }
.steps { list-style: none; margin: 0 0 1.5rem; padding: 0; }
.steps { display: grid; gap: 1rem; }
.steps li { margin: 0; padding-left: 1rem; border-left: 3px solid var(--strong); }
.steps b { display: block; font-weight: 600; }
.steps time { color: var(--quiet); font-size: .875rem; font-variant-numeric: tabular-nums; }
table { width: 100%; max-width: 42rem; margin: 0 0 1rem; border-collapse: collapse; }
td { font-variant-numeric: tabular-nums; }
caption { padding-bottom: .5rem; text-align: left; }
th, td { padding: .4rem 0 .4rem 1rem; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
th:first-child { padding-left: 0; text-align: left; }
thead th { color: var(--quiet); font-size: .875rem; vertical-align: bottom; }
th code { color: var(--quiet); white-space: nowrap; }
summary { cursor: pointer; }
summary h2 { display: inline; }
summary:focus-visible { outline: 2px solid var(--strong); outline-offset: 4px; }
summary .note { display: block; margin-top: .25rem; }
@media (max-width: 30rem) {
  body { padding: 2rem 1.125rem 4rem; }
  h1 { font-size: 2rem; }
  .lead { font-size: 1.1875rem; }
}
@media print, (min-width: 46rem) {
  .steps { grid-template-columns: repeat(4, 1fr); }
  .steps li { padding: .75rem 0 0; border-left: 0; border-top: 3px solid var(--strong); }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 3rem; }
  .facts > div { display: grid; grid-template-columns: 11rem 1fr; gap: 1rem; }
  .facts dt { padding-top: .1rem; }
}
@media (min-width: 64rem) {
  main > section, main > .facts > div { display: grid; grid-template-columns: 11rem 1fr; gap: 0 2.5rem; }
  section > div > :last-child { margin-bottom: 0; }
}
@media print {
  @page { size: A4; margin: 18mm; }
  :root {
    color-scheme: light;
    --paper: #ffffff; --ink: #000000; --quiet: #444444; --line: #bbbbbb; --edge: #666666;
    --strong: #1f5a4a; --tint: #ffffff;
  }
  html { font-size: 9pt; }
  body { max-width: none; padding: 0; }
  .pair { gap: 2rem; }
  section, details { margin-top: 1.25rem; padding-top: 1rem; }
  h2, h3 { break-after: avoid; }
  table, dl > div, pre, .pair { break-inside: avoid; }
}
"""
