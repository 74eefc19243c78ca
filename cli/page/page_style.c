/* The style sheet of pages: one column on a phone, cards beside each other on a desk, dark
 * where the reader's system is, black on white on paper. Colours of pictures are Okabe and
 * Ito's, told apart by colour-blind readers; text has a contrast of at least 4.5. */
#include "cli/page/page_priv.h"

const char *const ms_page_style[] = {
    ":root{--bg:#fff;--fg:#1b1f24;--muted:#57606a;--line:#d0d7de;--soft:#f4f6f8;"
    "--link:#0b57d0;--bad:#b3261e;--idle:#e3e6ea}",
    "@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6e9ed;"
    "--muted:#a3adb8;--line:#39424d;--soft:#1d232a;--link:#8ab4f8;--bad:#ff8a80;"
    "--idle:#313943}}",
    "*{box-sizing:border-box}",
    "html{scroll-behavior:auto;-webkit-text-size-adjust:100%}",
    "body{margin:0 auto;padding:1rem;max-width:78rem;background:var(--bg);"
    "color:var(--fg);font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Noto Sans\",sans-serif;overflow-wrap:break-word}",
    "a{color:var(--link)}",
    ":focus-visible{outline:3px solid var(--link);outline-offset:2px}",
    ".skip{position:absolute;left:-999rem}",
    ".skip:focus{left:1rem;top:1rem;background:var(--bg);padding:.5rem 1rem}",
    "h1{font-size:1.8rem;line-height:1.2;margin:.2rem 0 .8rem}",
    "h2{font-size:1.3rem;margin:0 0 .6rem;padding-top:1.2rem;"
    "border-top:1px solid var(--line)}",
    "h3{font-size:1.05rem;margin:1rem 0 .3rem}",
    "section{margin-top:1.6rem}",
    ".kicker,footer,small,figcaption{color:var(--muted)}",
    ".kicker{margin:0}",
    "nav ul,.legend{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;"
    "gap:.3rem 1rem}",
    "nav a{display:inline-block;padding:.2rem 0}",
    ".verdict{font-size:1.1rem}",
    ".warning{border-left:4px solid var(--bad);padding-left:.8rem}",
    ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));"
    "gap:.8rem;margin:1rem 0}",
    ".card{background:var(--soft);border:1px solid var(--line);border-radius:.5rem;"
    "padding:.7rem .9rem}",
    ".card dt{font-weight:600;color:var(--muted)}",
    ".card dd{margin:0;font-size:1.3rem;font-weight:650}",
    ".card small{display:block;font-size:.85rem;font-weight:400}",
    "dt{font-weight:600}",
    "dd{margin:0 0 .7rem}",
    "ul{padding-left:1.2rem}",
    "li{margin:.2rem 0}",
    ".sentences li::first-letter{text-transform:uppercase}",
    ".columns{columns:11rem;column-gap:1.5rem;font-size:.9rem}",
    ".wide{overflow-x:auto;margin:.8rem 0}",
    "table{border-collapse:collapse;font-size:.9rem;"
    "font-variant-numeric:tabular-nums}",
    "caption{text-align:left;font-weight:600;padding:.2rem 0 .4rem}",
    "th,td{padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;text-align:left}",
    "tbody th{font-weight:500}",
    ".r{text-align:right}",
    "pre{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;"
    "padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}",
    "figure{margin:1rem 0}",
    "figcaption{font-size:.9rem;margin-top:.3rem}",
    ".wide svg{display:block;width:100%;min-width:44rem;height:auto}",
    "svg text{font-size:12px;fill:var(--fg);font-family:system-ui,sans-serif}",
    "svg .end{text-anchor:end}",
    "svg .middle{text-anchor:middle}",
    "svg .on{text-anchor:middle;font-size:9px;fill:#111}",
    "svg .k2-text{fill:#fff}",
    ".bar{display:block;width:100%;height:2.4rem}",
    ".limit{stroke:var(--fg);stroke-width:1.5;stroke-dasharray:4 3;fill:none}",
    ".legend{font-size:.9rem;margin-top:.4rem}",
    ".mark{display:inline-block;width:.9em;height:.9em;margin-right:.4em;"
    "vertical-align:-.08em;border:1px solid var(--muted)}",
    ".k0,.p0,.m0{fill:#56b4e9;background:#56b4e9}",
    ".k1,.m1{fill:#00a67a;background:#00a67a}",
    ".k2,.m2{fill:#0072b2;background:#0072b2}",
    ".k3,.p1,.m3{fill:#e69f00;background:#e69f00}",
    ".k4,.p3,.m4{fill:#f0e442;background:#f0e442}",
    ".k5,.m5{fill:#cc79a7;background:#cc79a7}",
    ".k6,.m6,.p4{fill:#d55e00;background:#d55e00}",
    ".m7{fill:#8a8f98;background:#8a8f98}",
    ".m8{fill:#c3a0e0;background:#c3a0e0}",
    ".idle,.p2{fill:var(--idle);background:var(--idle)}",
    "svg .apart path,svg rect[class^=m]{stroke:var(--bg);stroke-width:.4}",
    ".paper{background:#fff;border:1px solid var(--line);padding:.4rem}",
    ".paper svg{width:auto;min-width:0;max-width:none}",
    "section{min-width:0}",
    "@media screen and (min-width:72rem){main{display:grid;column-gap:2.5rem;"
    "grid-template-columns:minmax(0,1.8fr) minmax(0,1fr)}main>section{grid-column:1/-1}"
    "#answer{grid-column:1}#risk{grid-column:2}}",
    "@media print{:root{--bg:#fff;--fg:#000;--muted:#444;--line:#999;--soft:#fff;"
    "--link:#000;--bad:#000;--idle:#ddd}body{max-width:none;padding:0;font-size:9.5pt}"
    "nav,.skip{display:none}.wide{overflow:visible}.wide svg{min-width:0}"
    ".paper svg{max-width:100%;height:auto}table{font-size:7.5pt}"
    "td:last-child{overflow-wrap:anywhere}"
    "tr,.card,svg{break-inside:avoid}h2,h3,caption{break-after:avoid}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}",
    NULL,
};
