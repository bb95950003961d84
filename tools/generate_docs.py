#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the parts of docs/ that follow from the code, or checks that they are up to date.

    tools/generate_docs.py                     write the blocks of folders, threads, limits and states
    tools/generate_docs.py --programs DIR      write docs/user/options.md too, from the programs in DIR
    tools/generate_docs.py --check [...]       change nothing; exit 1 and name each block that is out of date

A generated block stands between the lines `<!-- generated: NAME -->` and `<!-- end of generated -->`.

    folders   tools/layers.txt, and the first sentence of each folder's README.md; in each such README the
              text behind `**May include:**` too
    threads   `// thread: NAME: what it does` in each class that starts a thread; longer text continues on
              lines that begin with `//   `
    worker_states, trace_states
              the tables of agent/source/neuron/capture/worker_capture_states.cc, each as a diagram and
              with the comments of its enumerators
    limits    the constants in lib/trace/*limits.h, lib/validate/limits.h and the tap's two shared headers
    options   --help of every program and command; other pages may name no option that is not there

tools/tidy.py runs the check of all but the options, which need built programs: the test options_page_test
does that.
"""

import argparse
import os
import re
import sys
import textwrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402
import man_page  # noqa: E402

BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)
FIX = "run tools/generate_docs.py"
FIX_OPTIONS = "run tools/generate_docs.py --programs build/release/bin"


class DocsError(Exception):
    """The code lacks something that a block is made of; says where and what to add."""


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


# --- Folders ------------------------------------------------------------------------------------

def first_sentence(text):
    """The first sentence below the title of a README, without links."""
    paragraph = " ".join(text.split("\n\n")[1].split()) if "\n\n" in text else ""
    sentence = re.match(r".*?(?=\.(?: [A-Z`*\[]|$)|$)", paragraph).group()
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)


def may_include(layers, pattern):
    """What a line of the table permits, as text without a full stop; empty for nothing."""
    libraries = sorted({prefix.strip("/") for prefix, places, _ in layers.only for place in places
                        if layers.folder_of(place.removesuffix("/**") + "/x.h") == pattern})
    names, _ = layers.may_include[pattern]
    may = ["anything" if name == "*" else f"`{name}`" for name in names]
    text = ", ".join(may + [f"`<{library}>`" for library in libraries])
    for file in sorted(layers.files):
        if layers.folder_of(os.path.dirname(file) + "/x.h") == pattern:
            more = [f"`{name}`" for name in layers.may_include[file][0] if name not in names]
            text += f"; `{os.path.basename(file)}` also {', '.join(more)}"
    return text


MAY_INCLUDE = re.compile(r"^\*\*May include:\*\* .*?(?=\n\*\*|\n\n|\n?\Z)", re.MULTILINE | re.DOTALL)


def readmes(root):
    """[(path, block, text now, text as it should be)] of what the folders' READMEs say about includes."""
    if not os.path.exists(os.path.join(root, "tools", "layers.txt")):
        return []
    layers = check_layers.Layers.parse(read(root, "tools/layers.txt"))
    found = []
    for pattern in layers.folders():
        path = os.path.join(pattern.removesuffix("/**"), "README.md")
        now = MAY_INCLUDE.search(read(root, path)) if os.path.exists(os.path.join(root, path)) else None
        if now:
            wanted = f"**May include:** {may_include(layers, pattern) or 'nothing of ours'}."
            found.append((path, "May include", now.group(), "\n".join(textwrap.wrap(
                wanted, 120, break_long_words=False, break_on_hyphens=False))))
    return found


def folders(root):
    layers = check_layers.Layers.parse(read(root, "tools/layers.txt"))
    items = []
    for pattern in layers.folders():
        line = layers.may_include[pattern][1]
        folder = pattern.removesuffix("/**")
        readme = os.path.join(folder, "README.md")
        if not os.path.exists(os.path.join(root, readme)):
            raise DocsError(f"{readme}: tools/layers.txt:{line} names this folder: say in a README what its one job is")
        job = first_sentence(read(root, readme))
        if not job:
            raise DocsError(f"{readme}: the first paragraph has to be a sentence that says the folder's one job")
        may = may_include(layers, pattern)
        includes = f" May include: {may}." if may else ""
        items.append(f"- [`{folder}/`](../../{readme}): {job}.{includes}\n")
    return "".join(items)


# --- Threads ------------------------------------------------------------------------------------

STARTS = re.compile(r"\bstd::j?thread>? +\w+\s*[;({=]|\bStartDetachedThread\(&")
THREAD = re.compile(r"^ *// thread: ([^:\n]+): (.*(?:\n *//   \S.*)*)", re.MULTILINE)
PROGRAMS = (("tap", "worker"), ("annotate", "worker"), ("agent", "agent"), ("aggregator", "aggregator"),
            ("cli", "command"), ("lib/web", "command"), ("", "daemons"))


def code_files(root):
    layers = check_layers.Layers.parse(read(root, "tools/layers.txt"))
    for top in sorted(layers.top_folders() - {"tests", "proto"}):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".h", ".cc", ".c")) and not check_layers.is_test(path):
                    yield path


def threads(root):
    rows, starters, marked = [], {}, set()
    for path in code_files(root):
        text, stem = read(root, path), os.path.splitext(path)[0]
        if STARTS.search(text):
            starters[stem] = path
        for name, words in THREAD.findall(text):
            marked.add(stem)
            program = next(word for top, word in PROGRAMS if not top or path.startswith(top + "/"))
            rows.append([program, name, f"[`{path}`](../../{path})", re.sub(r"\s*//\s*", " ", words).rstrip(".")])
    for stem in sorted(starters.keys() - marked):
        raise DocsError(f"{starters[stem]}: starts a thread: say in a comment `// thread: NAME: what it does`")
    order = [word for _, word in PROGRAMS]
    return table(["program", "thread", "in", "does"], sorted(rows, key=lambda row: order.index(row[0])))


# --- State machines -----------------------------------------------------------------------------

STATES = "agent/source/neuron/capture/worker_capture_states"
STATE_ROW = re.compile(r"^ *\{(\w+)::k(\w+), (\w+)::k(\w+), \w+::k(\w+)(?:, \w+::k(\w+))?\},", re.MULTILINE)
ENUMERATOR = re.compile(r"^ *k(\w+), *// (.*(?:\n *// .*)*)", re.MULTILINE)


def enumerators(text, name):
    """[(enumerator without k, comment)] of an enum class each of whose enumerators has a comment behind it."""
    body = re.search(r"enum class " + name + r" : \w+ \{(.*?)\};", text, re.DOTALL)
    pairs = ENUMERATOR.findall(body.group(1)) if body else []
    found = [(key, re.sub(r"\s*\n *// ", " ", words)) for key, words in pairs]
    if not found:
        raise DocsError(f"{STATES}.h: {name} has no enumerators with comments: the page of the states is made of them")
    return found


def state_rows(root, first):
    """[(from, event, to, action)] of the table whose rows begin with `first`."""
    found = STATE_ROW.findall(read(root, STATES + ".cc"))
    rows = [(row[1], row[3], row[4], row[5]) for row in found if row[0] == first]
    if not rows:
        raise DocsError(f"{STATES}.cc: no row begins with {{{first}::: the page of the states is made of them")
    return rows


def diagram(states, rows):
    """A Mermaid diagram of what changes the state; events that lead the same way share an arrow."""
    arrows = {}
    for state, event, after, _ in rows:
        if state != after:
            arrows.setdefault((state, after), []).append(event)
    order = [state for state, _ in states]
    lines = [f"    [*] --> {order[0]}"]
    for state, after in sorted(arrows, key=lambda ends: [order.index(end) for end in ends]):
        lines.append(f"    {state} --> {after}: {', '.join(arrows[(state, after)])}")
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n"


def worker_states(root):
    header = read(root, STATES + ".h")
    phases, events, actions = (enumerators(header, name) for name in ("WorkerPhase", "WorkerEvent", "WorkerAction"))
    rows = state_rows(root, "P")
    # The end is the same from everywhere, and would hide the rest.
    shown = [row for row in rows if row[1] != events[-1][0]]
    arrows = diagram(phases, shown)
    order = [event for event, _ in events]
    body = sorted(rows, key=lambda row: order.index(row[1]))
    return (f"{arrows}\n`{events[-1][0]}` leads from every phase to `{phases[-1][0]}`, and is not drawn.\n\n"
            + table(["phase", "meaning"], [[f"`{name}`", words] for name, words in phases])
            + "\n" + table(["event", "what happens"], [[f"`{name}`", words] for name, words in events])
            + "\n" + table(["action", "what the agent does"], [[f"`{name}`", words] for name, words in actions])
            + "\n" + table(["event", "in phase", "leads to", "action"],
                           [[f"`{event}`", f"`{state}`", f"`{after}`", f"`{action}`" if action != "None" else "-"]
                            for state, event, after, action in body]))


def trace_states(root):
    header = read(root, STATES + ".h")
    states, signs = (enumerators(header, name) for name in ("TraceState", "TraceSign"))
    return (diagram(states, state_rows(root, "TraceState")) + "\n"
            + table(["state", "meaning"], [[f"`{name}`", words] for name, words in states]) + "\n"
            + table(["sign", "meaning"], [[f"`{name}`", words] for name, words in signs]))


# --- Limits -------------------------------------------------------------------------------------

# Headers of the libraries inside a worker, which have other constants too.
WORKER_LIMITS = ("tap/buffer_format.h", "tap/agent_protocol.h", "annotate/annotation_format.h",
                 "annotate/name_table.h")
WORKER_LIMIT = re.compile(r"M(?:ax|in)|Default|Timeout|Rings$|RingBytes$")
CONSTANT = re.compile(r"inline constexpr \w+ (k\w+)\s*=\s*(.*?);\s*(?://\s*(.*))?$", re.DOTALL)
UNITS = {"bytes": (("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
                   ("bytes", 1)),
         "ns": (("d", 86_400 * 10**9), ("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6),
                ("us", 10**3), ("ns", 1))}


def value_of(expression, known):
    """A constant's value, or None: numbers, casts in braces, other constants, and arithmetic."""
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", expression)
    text = re.sub(r"\b(?:size_t|u?int(?:\d+_t)?|double)\{([^{}]*)\}", r"(\1)", text)
    text = re.sub(r"\b0x([0-9a-fA-F]+)", lambda match: str(int(match.group(1), 16)), text)
    text = re.sub(r"\b(\d+(?:\.\d+)?)[uUlLzZ]*\b", r"\1", text).replace("/", "//")
    text = re.sub(r"\b(?:\w+::)?(k\w+)", lambda match: str(known.get(match.group(1))), text)
    if not re.fullmatch(r"[\d.\s+*/()<>-]+", text):
        return None
    return eval(" ".join(text.split()), {"__builtins__": {}})  # digits and operators, by the line above


def with_unit(name, value):
    unit = "ns" if re.search(r"Ns(?![a-z])", name) else "bytes" if re.search(r"Bytes(?![a-z])", name) else None
    if unit is None:
        return f"{value:,}" + (" ms" if re.search(r"Ms(?![a-z])", name) else "")
    for word, factor in UNITS[unit]:
        if value >= factor and value % factor == 0:
            return f"{value // factor:,} {word}"
    return f"{value:,} {unit}"


def groups_of(text):
    """(comment of the file, [(comment, [(name, expression, remark)])]) of one header."""
    about, found, comment, constants, statement = "", [], [], [], ""
    for line in text.split("\n") + [""]:
        stripped = line.strip()
        if statement or stripped.startswith("inline constexpr"):
            statement += "\n" + stripped
            match = CONSTANT.search(statement)
            if match:
                constants.append(match.groups(default=""))
            if match or ";" in statement:
                statement = ""
            continue
        if constants:
            found.append((" ".join(comment), constants))
            comment, constants = [], []
        if stripped.startswith("namespace"):
            about, comment = " ".join(comment), []
        elif stripped.startswith("// ") and "SPDX" not in stripped:
            comment.append(stripped[3:])
        elif not stripped.startswith("#"):
            comment = []
    return about, found


def limit_files(root):
    trace = os.path.join(root, "lib", "trace")
    shared = sorted(name for name in os.listdir(trace) if name.endswith("limits.h"))
    shared.sort(key=lambda name: name != "limits.h")
    return [f"lib/trace/{name}" for name in shared] + ["lib/validate/limits.h", *WORKER_LIMITS]


def limit_item(comment, lines):
    """A group of constants as an item of a list: what they limit, and a line for each if there are several."""
    if len(lines) == 1:
        return f"- {lines[0]}" + (f". {comment}\n" if comment else "\n")
    indent = "  " if comment else ""
    return (f"- {comment}\n" if comment else "") + "".join(f"{indent}- {line}\n" for line in lines)


def limits(root):
    paths = [path for path in limit_files(root) if os.path.exists(os.path.join(root, path))]
    headers = {path: groups_of(read(root, path)) for path in paths}
    known, out = {}, []
    constants = [constant for _, found in headers.values() for _, group in found for constant in group]
    for _ in range(3):  # some refer to others that come later
        for name, expression, _ in constants:
            value = value_of(expression, known)
            if value is not None:
                known[name] = value
    for path, (about, found) in headers.items():
        items = []
        for comment, group in found:
            kept = [name for name, _, _ in group if not name.startswith("kNo")
                    and (path not in WORKER_LIMITS or WORKER_LIMIT.search(name))]
            shown = [f"`{name}`: {with_unit(name, value_of(expression, known))}" + (f" ({remark})" if remark else "")
                     for name, expression, remark in group if name in kept and value_of(expression, known) is not None]
            if shown:
                items.append(limit_item(comment if group[0][0] in kept else "", shown))
        about = "" if path in WORKER_LIMITS else about
        out.append(f"\n## [{path}](../../{path})\n{about}{chr(10) * 2 if about else chr(10)}" + "".join(items))
    return "".join(out).lstrip("\n")


# --- Options ------------------------------------------------------------------------------------

def option_item(name, text):
    """An item of a list from one line of a --help: NAMES TYPE:CHECKS=DEFAULT (Env:VARIABLE) Needs: OTHER ..."""
    match = re.match(r"((?:-{1,2}[\w-]+(?:\{\w+\})?,?)+|[\w-]+) ?(.*)$", name)
    names, rest = match.groups()
    variable = re.search(r" ?\(Env:(\w+)\)", rest)
    rest = rest.replace(variable.group(), "") if variable else rest
    default = re.search(r"(?<=[\w\]}])=(\S*)", rest)
    choice = re.search(r"\{([^}]*)\}", rest)
    span = re.search(r"(?:INT|UINT|FLOAT) in \[(\d+) - (\d+)\]", rest)
    size = ":SIZE" in rest
    shown = with_unit("Bytes", int(default.group(1))) if default and size else default.group(1) if default else ""
    if choice:
        takes = choice.group(1).replace(",", ", ")
    elif span:
        low, high = (with_unit("Bytes" if size else "", int(end)) for end in span.groups())
        takes = f"{low} to {high}"
    else:
        kind = re.match(r"\w*", rest).group()
        takes = "size" if size else {"UINT": "number", "INT": "number", "FLOAT": "number", "TEXT": "text"}.get(kind, "")
    if rest.endswith("..."):
        takes = f"{takes}, repeatable".lstrip(", ")
    names = ", ".join(f"`{one}`" for one in re.sub(r"\{\w+\}", "", names).split(","))
    takes = "; ".join([takes] * bool(takes) + [f"default `{shown}`"] * bool(shown))
    notes = [text.rstrip(".")] + ([f"Environment: `{variable.group(1)}`"] if variable else [])
    end = "" if notes[-1].endswith("…") else "."
    return f"- {names}{f' ({takes})' if takes else ''}: {'. '.join(notes)}{end}\n".replace("<", "&lt;")


def command_options(program, words):
    reported = man_page.Help(man_page.ask(program, *words, "--help"))
    title = " ".join([os.path.basename(program), *words])
    out = f"\n## {title}\n{reported.description}\n"
    entries = [entry for heading in ("Positionals:", "Options:") for entry in reported.entries[heading]]
    items = [option_item(name, text) for name, text in entries if not name.startswith(("-h,", "--version"))]
    if items:
        out += "\n" + "".join(items)
    return out + "".join(command_options(program, [*words, command]) for command in reported.commands())


def options(programs):
    names = ("neurontrace", "neurontrace-agent", "neurontrace-aggregator")
    return "".join(command_options(os.path.join(programs, name), []) for name in names).lstrip("\n")


# --- Pages --------------------------------------------------------------------------------------

PAGES = {"docs/developer/ARCHITECTURE.md": ("folders", "threads"), "docs/operator/limits.md": ("limits",),
         "docs/developer/worker_states.md": ("worker_states", "trace_states")}
OPTIONS_PAGE = "docs/user/options.md"
EXPLAIN_OPTIONS = tuple(f"docs/{name}.md" for name in (
    "user/certificates", "user/cli", "user/first_steps", "user/ranks", "user/recipes", "user/record", "user/triggers",
    "user/view",
    "operator/artifacts", "operator/backup", "operator/check_store", "operator/clocks", "operator/configuration",
    "operator/doctor", "operator/export_to_volumes", "operator/framework_files", "operator/health",
    "operator/host_samples", "operator/install", "operator/retention", "operator/runbooks", "operator/security",
    "operator/select_workers", "operator/spool", "operator/start_captures", "operator/uninstall", "operator/upgrades"))
OPTION = re.compile(r"`(--[a-z][\w-]*\w)(?!\w|-|…)")


def rewritten(root, programs=None):
    """[(path, block, text now, text as it should be)] of every block."""
    makers = {"folders": folders, "threads": threads, "limits": limits, "worker_states": worker_states,
              "trace_states": trace_states}
    pages = dict(PAGES, **({OPTIONS_PAGE: ("options",)} if programs else {}))
    found = readmes(root)
    for path, blocks in pages.items():
        if not os.path.exists(os.path.join(root, path)):
            continue
        text = read(root, path)
        there = {match.group(2): match for match in BLOCK.finditer(text)}
        for block in blocks:
            if block in there:
                made = options(programs) if block == "options" else makers[block](root)
                match = there[block]
                found.append((path, block, match.group(), match.group(1) + made + match.group(3)))
    return found


def unknown_options(root):
    """[(path, line, message)] of options that a page names and no program has, by docs/user/options.md."""
    paths = [path for path in (OPTIONS_PAGE, *EXPLAIN_OPTIONS) if os.path.exists(os.path.join(root, path))]
    if OPTIONS_PAGE not in paths:
        return []
    known = set(OPTION.findall(read(root, OPTIONS_PAGE)))
    return [(path, number, f"no program has the option {option}") for path in paths
            for number, line in enumerate(read(root, path).split("\n"), 1)
            for option in OPTION.findall(line) if option not in known]


def out_of_date(root, programs=None):
    """[(path, line, message)] of the blocks that differ from the code."""
    try:
        return [(path, read(root, path).split(now)[0].count("\n") + 1,
                 f"the block '{block}' differs from the code: {FIX_OPTIONS if block == 'options' else FIX}")
                for path, block, now, wanted in rewritten(root, programs) if now != wanted] + unknown_options(root)
    except DocsError as error:
        path, message = str(error).split(": ", 1)
        return [(path, 1, message)]


def check(sources):
    """As a rule of tidy.py over the whole tree."""
    return out_of_date(sources[0].root) if sources else []


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--root", default=here, help="the tree to work on (default: this repository)")
    parser.add_argument("--programs", help="folder of the built programs, for docs/user/options.md")
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if a block is out of date")
    chosen = parser.parse_args(arguments)
    if chosen.check:
        findings = out_of_date(chosen.root, chosen.programs)
        for path, line, message in findings:
            print(f"{path}:{line}: {message}")
        return 1 if findings else 0
    try:
        for path, block, now, wanted in rewritten(chosen.root, chosen.programs):
            if now != wanted:
                text = read(chosen.root, path).replace(now, wanted)
                with open(os.path.join(chosen.root, path), "w", encoding="utf-8") as file:
                    file.write(text)
                print(f"{path}: wrote {block}")
    except DocsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
