# SPDX-License-Identifier: Apache-2.0
"""The rule plain-words: no banned phrase in comments, literals, YAML and Markdown, no overlong sentence in messages."""

import ast
import bisect
import re

import tidy_functions
from tidy_sentences import MAX_WORDS

# (pattern, what to write instead). Each reads like a translation, or means something else to most readers.
PHRASES = [
    (r"(?:begins?|began|begun|starts?|started|made|makes?|writes?|written|reads?|counts?)? ?anew", "again, restart"),
    (r"of which", "a second sentence"),
    (r"(?:goes|went) on|going on", "continues, resumes, is running"),
    (r"likewise", "also, the same applies to"),
    (r"in words|the words of", "as text, the text of"),
    (r"mend(?:s|ed|ing)?", "fix, repair"),
    (r"(?:is|are|was) had", "has, exists"),
    (r"what (?:came|comes|becomes?|became) of", "the result of"),
    (r"what (?:the|a|an|its|their) [\w-]+ says?", "the text of, the value of"),
    (r"says? of (?:it|them)sel(?:f|ves)", "reports"),
    (r"stands? (?:in|at|by|behind|before|alone|beside|there)", "is in, is at, follows, precedes"),
    (r"who(?:ever|soever)? does", "a noun: the caller, the owner"),
    (r"for want of", "because there is no"),
    (r"by and by", "later, gradually"),
    (r"at the most", "at most"),
    (r"(?:is|are) (?:not )?heard", "is received, is accepted"),
    (r"(?:tells|tell|told) of", "reports"),
    (r"has to stand|have to stand", "must be in"),
    (r"in the mean(?!time|while| time|ing|\w)", "on average"),
    (r"this side of", "before, until"),
    (r"leave(?:s)? it out(?= for| where| to)", "omit it"),
    (r"so (?:many|much|long) (?:as )?(?:there|it) (?:is|are|may)", "a limit with its name"),
]
PATTERN = re.compile("|".join(rf"(?P<p{i}>\b(?:{phrase})\b)" for i, (phrase, _) in enumerate(PHRASES)), re.IGNORECASE)
SENTENCE_END = re.compile(r"[.!?…:;](?:\s|$)|\\n|\n")
# These name the phrases that they look for.
OWN_FILES = re.compile(r"^tools/tidy\w*\.(?:py|json)$")


class Passages:
    """Text that belongs together, such as a comment over several lines, with the line of each place in it."""

    def __init__(self):
        self.found = []  # [kind, text, [offsets], [lines]]

    def add(self, kind, text, line, joins):
        """Starts a passage, or with `joins` continues the one before."""
        if not joins:
            self.found.append([kind, "", [], []])
        passage = self.found[-1]
        passage[2].append(len(passage[1]))
        passage[3].append(line)
        passage[1] += text

    def __iter__(self):
        for kind, text, offsets, lines in self.found:
            yield kind, text, lambda at, o=offsets, n=lines: n[bisect.bisect_right(o, at) - 1]


def passages_cc(text, into, pattern=tidy_functions.TOKEN):
    end, before = 0, None
    for token in pattern.finditer(text):
        kind = "comment" if token.group("comment") else "string" if token.group("string") else None
        joins = kind is not None and kind == before and not text[end:token.start()].strip()
        line = text.count("\n", 0, token.start()) + 1
        between = text[text.rfind("\n", 0, token.start()) + 1:token.start()]
        end, before = token.end(), kind
        if kind == "comment":
            joins = joins and not between.strip()
            for i, part in enumerate(token.group().split("\n")):
                into.add(kind, re.sub(r"^\s*(?://+|/?\*+/?)", "", part).strip() + " ", line + i, joins or i > 0)
        elif kind == "string" and not between.lstrip().startswith("#include"):
            into.add(kind, token.group()[1:].removesuffix(token.group()[0]), line, joins)
        else:
            before = None


def passages_hash(source, into):
    comment_before = False
    for line, (code, comment) in enumerate(source.code_and_comments, 1):
        words = comment.strip().lstrip("#").strip()
        if words:
            into.add("comment", words + " ", line, comment_before and not code.strip())
        elif source.language in ("shell", "yaml"):
            for literal in re.finditer(r'"([^"]*)"|\'([^\']*)\'', code):
                into.add("string", literal.group(1) or literal.group(2) or "", line, False)
        comment_before = bool(words)


def passages_python(source, into):
    passages_hash(source, into)
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for i, part in enumerate(node.value.split("\n")):
                into.add("string", part.strip() + "\n", node.lineno + i, i > 0)


def passages_markdown(source, into):
    fenced = joins = False
    for line, text in enumerate(source.lines, 1):
        if text.lstrip().startswith("```"):
            fenced, joins = not fenced, False
        elif not fenced:
            into.add("text", re.sub(r"`[^`]*`|\]\([^)]*\)", lambda m: "`" * len(m.group()), text).strip() + " ",
                     line, joins)
            joins = bool(text.strip())


def passages_of(source):
    into = Passages()
    if source.language in ("cc", "proto", "ts"):
        passages_cc(source.text, into, tidy_functions.token_of(source.language))
    elif source.language == "python":
        passages_python(source, into)
    elif source.language in ("shell", "yaml"):
        passages_hash(source, into)
    elif source.path.endswith(".md"):
        passages_markdown(source, into)
    return into


def findings_of(source):
    """[(line, message)] of a file, whatever its folder."""
    found = []
    if OWN_FILES.match(source.path):
        return found
    for kind, text, line_of in passages_of(source):
        for match in PATTERN.finditer(re.sub(r"\s", " ", text)):
            instead = PHRASES[int(match.lastgroup[1:])][1]
            found.append((line_of(match.start()), f"'{match.group().strip()}' reads like a translation; "
                          f"instead: {instead}"))
        if kind != "string" or source.is_test or source.language not in ("cc", "ts"):
            continue
        at = 0
        for sentence in SENTENCE_END.split(text):
            words = len(sentence.split())
            if words > MAX_WORDS:
                found.append((line_of(text.find(sentence, at)), f"a sentence of {words} words; a help text or "
                              f"message has at most {MAX_WORDS} in each"))
            at += len(sentence)
    return found


def check_plain_words(source, report):
    for line, message in findings_of(source):
        report(line, message)
