#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""weft report: what a reader sees of the page, in headless Chromium; and what is said to wrong files."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                       # noqa: E402
from browser import Browser                             # noqa: E402
from guest import Missing                               # noqa: E402
from t import check, equal                              # noqa: E402
from weft import program                                # noqa: E402

SAMPLE = pathlib.Path(__file__).resolve().parent / "lib" / "tables.json"
# what is text in the file must stay text in the page, in the figures and for gnuplot
EVIL = "<img src=http://127.0.0.1:9/x><script>document.title='evil'</script>'; system('touch evil'); `touch evil` \" %g"


def need_gnuplot():
    if not shutil.which("gnuplot"):
        raise Missing("no gnuplot (package gnuplot-nox)")


def report(*words, **more):
    return subprocess.run([program(), "report", *map(str, words)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **more)


def one_line(p, *contain):
    equal(p.returncode, 2, f"status; it said {p.stderr.strip()!r}")
    equal(p.stdout, "", "standard output")
    check(p.stderr.count("\n") == 1 and p.stderr.startswith("weft: "), f"it said {p.stderr!r}")
    for c in contain:
        check(c in p.stderr, f"it does not say {c!r}: {p.stderr.strip()}")


def mistakes(t):
    work = frame.workdir("weft-t")
    out = work / "out.html"
    text = SAMPLE.read_text()
    for name, content, *says in (("empty", "", "no JSON", "weft bench tables --json"),
                                 ("half", text[:len(text) // 2], "half.json", "not whole"),
                                 ("other", '{"a": 1}', "weft-tables"),
                                 ("newer", text.replace('"version": 1', '"version": 2'), "version 1"),
                                 ("wrong", text.replace('"median": 1.07,', '"median": "1.07",'),
                                  "rows[0].ratio.median", "a number")):
        with t.case(f"a file that is {name}"):
            path = work / f"{name}.json"
            path.write_text(content)
            one_line(report(path, "-o", out), *says)
            check(not out.exists(), "a page was written all the same")
    with t.case("no file, a folder, a place where nothing can be written"):
        one_line(report(work / "none.json"), "none.json", "No such file")
        one_line(report(work), "is no file")
        one_line(report(SAMPLE, "--markdown", "-o", work / "no" / "x.md"), "no/x.md", "No such file")
        one_line(report(SAMPLE, "--only", "S0"), "--only", "--markdown")
        one_line(report(SAMPLE, "--markdown", "--only", "S9"), "S9")
    with t.case("no gnuplot: told which package, and the old page stays"):
        out.write_text("old")
        one_line(report(SAMPLE, "-o", out, env=dict(os.environ, PATH="/nonexistent")), "gnuplot-nox")
        equal(out.read_text(), "old", "the page that was there")
        equal([p.name for p in work.glob("out.html.*")], [], "left behind")
    with t.case("Markdown needs no gnuplot"):
        p = report(SAMPLE, "--markdown", "--only", "S0", env=dict(os.environ, PATH="/nonexistent"))
        check(p.returncode == 0 and "S0.window" in p.stdout and "S1.stream" not in p.stdout, p.stdout[:400])


def make(path, source=SAMPLE, **more):
    need_gnuplot()
    p = report(source, "-o", path, **more)
    equal((p.returncode, p.stderr), (0, ""), "status and words of weft report")
    return path


VISIBLE = """[...document.querySelectorAll('%s')].map(e => { const r = e.getBoundingClientRect(), s = getComputedStyle(e);
    return [r.left, r.right, r.width, r.height, parseFloat(s.fontSize), s.color]; })"""


def page(t):
    work = frame.workdir("weft-t")
    path = make(work / "page.html")
    want = json.loads(SAMPLE.read_text())
    with Browser() as b:
        p = b.page(path, 1200)
        with t.case("nothing is asked for but the page, and the browser has no complaint"):
            equal(p.requests, [p.url], "requests")
            equal(p.complaints, [], "complaints")
            check(not re.search(r'(src|href)="(?!#)', path.read_text()), "an address in it leads away")
        with t.case("machine, kernel, verdicts, every arm and published figure can be read"):
            text = p.js("document.body.innerText")
            m = want["machine"]
            for need in (m["cpu"], m["kernel"], m["placement"], want["cost_model"]["note"]):
                check(need in text, f"not on the page: {need}")
            for e in want["experiments"]:
                for need in [e["title"], e["published"]] + [x["title"] for x in e["tables"]]:
                    check(need in text, f"not on the page: {need}")
                for row in (r for x in e["tables"] for r in x["rows"]):
                    check(row["arm"] in text and row["verdict"] in text and row["why"] in text, f"not on the page: {row}")
            rows = p.js("[...document.querySelectorAll('main section table')].map(t => t.tBodies[0].rows.length)")
            check(sum(rows) > 100 and min(rows) > 0, f"rows of the tables: {rows}")
        with t.case("tables have captions and scopes; figures a title, a description and a caption"):
            equal(p.js("[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent).length"), 0,
                  "tables without a caption")
            equal(p.js("document.querySelectorAll('th:not([scope])').length"), 0, "headers without a scope")
            equal(p.js("""[...document.querySelectorAll('svg')].filter(s => s.getAttribute('role') != 'img' ||
                s.getAttribute('aria-labelledby').split(' ').some(i => !document.getElementById(i).textContent)).length"""),
                  0, "figures without words")
            equal(p.js("document.querySelectorAll('figure:not(:has(figcaption))').length"), 0, "figures without a caption")
            ids = p.js("[...document.querySelectorAll('[id]')].map(e => e.id)")
            equal(len(ids), len(set(ids)), "ids, each once")
        with t.case("figures have a size, and ink in the colours of the page"):
            boxes = p.js(VISIBLE % "figure svg")
            check(len(boxes) >= 12, f"{len(boxes)} figures")
            for left, right, width, height, *_ in boxes:
                check(width > 300 and height > 60, f"a figure of {width} x {height}")
            inks = p.js("""[...new Set([...document.querySelectorAll('figure svg path, figure svg use')].map(
                e => getComputedStyle(e).color))]""")
            check(len(inks) >= 3, f"colours of the figures: {inks}")
            check("var(" not in str(inks), inks)
        with t.case("the runs lie behind a fold, and are there when it is opened"):
            equal(p.js("document.querySelector('details.runs tbody tr').checkVisibility({contentVisibilityAuto: true}) && "
                       "document.querySelector('details.runs tbody tr').getBoundingClientRect().height > 0"), False, "shown")
            p.js("document.querySelector('details.runs').open = true")
            check(p.js("document.querySelector('details.runs tbody tr').getBoundingClientRect().height") > 0, "hidden")
            check("1 234 567".replace(" ", "\u202f") in p.js("document.querySelector('details.runs').innerText"),
                  "no counter of a run")
        with t.case("dark is dark: page, letters and figures change, and contrast stays"):
            look = """(() => { const s = e => getComputedStyle(document.querySelector(e));
                return [s('body').backgroundColor, s('body').color, s('figure svg').color, s('caption').color,
                        s('figure svg use[color]').color]; })()"""

            def light(c):
                v = [int(x) / 255 for x in re.findall(r"\d+", c)[:3]]
                v = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in v]
                return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]

            def contrast(a, b):
                a, b = sorted((light(a), light(b)))
                return (b + 0.05) / (a + 0.05)
            seen = {}
            for dark in (False, True):
                p.look(1200, dark=dark)
                seen[dark] = p.js(look)
                page_colour, *inks = seen[dark]
                check((light(page_colour) < 0.05) == dark, f"dark={dark}: the page is {page_colour}")
                for ink in inks[:3]:
                    check(contrast(page_colour, ink) >= 4.5, f"dark={dark}: {ink} on {page_colour}")
                check(contrast(page_colour, inks[3]) >= 3, f"dark={dark}: marks {inks[3]} on {page_colour}")
            check(all(a != b for a, b in zip(*seen.values())), f"the same in both: {seen}")
        with t.case("400 pixels: nothing to scroll sideways, cells are whole, labelled and big enough"):
            p.look(400, dark=False)
            equal(p.js("document.documentElement.scrollWidth"), 400, "width of the page")
            p.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            cells = p.js(VISIBLE % "section table tbody th, section table tbody td")
            check(len(cells) > 300, f"{len(cells)} cells")
            for left, right, width, height, size, _ in cells:
                check(left >= 0 and right <= 400 and size >= 12, f"a cell from {left} to {right}, letters of {size}")
            label = p.js("getComputedStyle(document.querySelector('td[data-label=verdict]'), '::before').content")
            equal(label, '"verdict"', "label of a cell")
        with t.case("on paper it is black on white"):
            p.look(800, dark=True, media="print")
            equal(p.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "the page")


def quick(t):
    """A quick run has no ratios: no section stands empty for them."""
    work = frame.workdir("weft-t")
    data = json.loads(SAMPLE.read_text())
    data["quick"], data["cost_model"] = True, None
    for row in (r for e in data["experiments"] for x in e["tables"] for r in x["rows"]):
        row["ratio"] = None
    source = work / "quick.json"
    source.write_text(json.dumps(data))
    path = make(work / "quick.html", source)
    with Browser() as b, t.case("said to be quick, and no section is empty"):
        p = b.page(path)
        check("quick run" in p.js("document.body.innerText"), "not said")
        equal(p.js("""[...document.querySelectorAll('section')].filter(
            s => !s.querySelector('table, figure')).map(s => s.id)"""), [], "empty sections")


def hostile(t):
    """Every text of the file is an attack; every number is somewhere out of the way."""
    need_gnuplot()
    work = frame.workdir("weft-t")

    def spoil(o, key=None):
        if isinstance(o, dict):
            return {k if key != "knobs" else k + EVIL: spoil(v, k) for k, v in o.items()}
        if isinstance(o, list):
            return [spoil(v, key) for v in o]
        return o + EVIL if isinstance(o, str) and key not in ("format",) else o

    def numbers(o, n):
        if isinstance(o, dict):
            return {k: v if k == "version" else numbers(v, n) for k, v in o.items()}
        if isinstance(o, list):
            return [abs(n) if i == 2 and len(o) == 3 and not isinstance(v, (dict, list, str)) else numbers(v, n)
                    for i, v in enumerate(o)]
        return n if isinstance(o, (int, float)) and not isinstance(o, bool) else o
    sample = json.loads(SAMPLE.read_text())
    source = work / "evil.json"
    source.write_text(json.dumps(spoil(copy.deepcopy(sample))))
    with t.case("texts stay texts: no element, no script, no command, no request"):
        path = make(work / "evil.html", source, cwd=work)
        check(not (work / "evil").exists(), "gnuplot ran a command")
        with Browser() as b:
            p = b.page(path)
            equal(p.requests, [p.url], "requests")
            equal(p.js("document.querySelectorAll('img, script, main a').length"), 0, "elements made of text")
            check("evil" not in p.js("document.title").replace(EVIL, ""), "a script ran")
            check(EVIL in p.js("document.querySelector('h2 + blockquote').innerText"), "the text is not shown as it is")
    for n in (0, -1, 1e-300, 1e300, 1):
        with t.case(f"every number is {n:g}"):
            source.write_text(json.dumps(numbers(copy.deepcopy(sample), n)))
            make(work / "numbers.html", source)


if __name__ == "__main__":
    frame.main(mistakes, page, quick, hostile)
