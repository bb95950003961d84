# SPDX-License-Identifier: Apache-2.0
"""Splits source text into code and comments, and finds where functions begin and end.

Not a parser: it knows literals, comments, brackets and the heads that are not functions (namespace, class,
enum, initialiser). That is enough to measure lengths in code that a formatter has laid out.
"""

import ast
import bisect
import re

# A comment or a literal. A quote after a digit or letter separates digits: 1'000 is not a character literal.
TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
      |(?P<raw>(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
      |(?P<string>"(?:\\.|[^"\\\n])*"?)
      |(?P<character>(?<!\w)'(?:\\.|[^'\\\n])*'?)""", re.DOTALL | re.VERBOSE)
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
NOT_A_FUNCTION = re.compile(r"^(?:inline\s+)?(?:namespace|enum|extern|export)\b")
TYPE_HEAD = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union)\b", re.DOTALL)
ATTRIBUTES = re.compile(r"\b(?:alignas|__attribute__|ABSL_[A-Z_]+)\s*\([^()]*(?:\([^()]*\))?[^()]*\)|\[\[.*?\]\]")
# `Type(int a) : a_(a), b_` just before `{`: the brace initialises b_, the body comes later.
MEMBER_INITIALISER = re.compile(r"\)[^:;]*(?<!:):(?!:).*[\w>]\s*$", re.DOTALL)


# In TypeScript a template, which may have line ends, is a literal too.
TOKEN_TS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
      |(?P<string>"(?:\\.|[^"\\\n])*"?|(?<!\w)'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`)""", re.DOTALL | re.VERBOSE)
# The type that a function of TypeScript returns, between its parameters and its body.
RETURN_TYPE = re.compile(r"(?<=\))\s*:\s*(?:\{[^{}]*\}(?:\[\])?|[^{}()=;]+)\s*(?=\{)")


def token_of(language):
    """The pattern of comments and literals in a language with C's comments."""
    return TOKEN_TS if language == "ts" else TOKEN


def blank(text):
    """The same text with everything but line ends blanked."""
    return re.sub(r"[^\n]", " ", text)


def split_cc(text, pattern=TOKEN):
    """(code, comments) of text with C's comments; both keep the length and the lines of the original."""
    code, comments = [], []
    end = 0
    for token in pattern.finditer(text):
        between = text[end:token.start()]
        code += [between, blank(token.group())]
        comments += [blank(between), token.group() if token.group("comment") else blank(token.group())]
        end = token.end()
    code.append(text[end:])
    comments.append(blank(text[end:]))
    return "".join(code), "".join(comments)


def split_hash(text):
    """(code, comments) where # begins a comment outside quotes on its line: shell, CMake, YAML, Python."""
    code, comments = [], []
    for line in text.split("\n"):
        quote, at = "", len(line)
        for i, character in enumerate(line):
            if quote:
                if character == quote and line[i - 1] != "\\":
                    quote = ""
            elif character in "\"'":
                quote = character
            elif character == "#" and (i == 0 or line[i - 1] in " \t;"):
                at = i
                break
        code.append(line[:at])
        comments.append(" " * at + line[at:])
    return "\n".join(code), "\n".join(comments)


def split_lines(lines, language):
    text = "\n".join(lines)
    has_c_comments = language in ("cc", "proto", "ts")
    code, comments = split_cc(text, token_of(language)) if has_c_comments else split_hash(text)
    return list(zip(code.split("\n"), comments.split("\n")))


def without_preprocessor(code):
    """Blanks preprocessor lines with their continuations, so that macros' brackets do not count."""
    out, continued = [], False
    for line in code.split("\n"):
        is_directive = continued or line.lstrip().startswith("#")
        continued = is_directive and line.rstrip().endswith("\\")
        out.append(" " * len(line) if is_directive else line)
    return "\n".join(out)


def is_function_head(head):
    """True when text between the last ; { } and a { opens a function (or a lambda at file level)."""
    head = ACCESS.sub(" ", head).strip()
    bare = ATTRIBUTES.sub(" ", head)
    if "(" not in bare or bare.rstrip().endswith("="):
        return False
    if NOT_A_FUNCTION.match(bare) and not (bare.startswith("extern") and "(" in bare):
        return False
    if TYPE_HEAD.match(bare):
        return bool(re.search(r"\)\s*(?:const|noexcept|override|final|\s)*$", bare)) and " : " not in bare
    return True


class FunctionFinder:
    """Walks the brackets of blanked code and notes where each outermost function begins and ends."""

    def __init__(self, code):
        self.code = code
        self.line_ends = [match.start() for match in re.finditer("\n", code)]
        self.found = []
        self.braces = 0
        self.parentheses = 0  # since the last statement began
        self.head_start = 0
        self.function = None  # (name, first line, brace depth) while inside one
        self.initialiser = None  # brace depth while inside the brace of a member initialiser

    def run(self):
        for match in re.finditer(r"[{}();]", self.code):
            i, character = match.start(), match.group()
            if character == "{":
                self.open_brace(i)
            elif character == "}":
                self.close_brace(i)
            elif self.function is None and self.initialiser is None:
                self.other(i, character)
        return self.found

    def line_of(self, i):
        return bisect.bisect_left(self.line_ends, i) + 1

    def open_brace(self, i):
        if self.function is None and self.initialiser is None and self.parentheses == 0:
            head = self.code[self.head_start:i]
            if MEMBER_INITIALISER.search(head) and not head.rstrip().endswith(")"):
                self.initialiser = self.braces
            elif is_function_head(head):
                head = ACCESS.sub(lambda match: blank(match.group()), head)
                first = self.head_start + len(head) - len(head.lstrip())
                self.function = (name_of(head), self.line_of(first), self.braces)
            else:
                self.head_start = i + 1
        self.braces += 1

    def close_brace(self, i):
        self.braces -= 1
        if self.initialiser is not None:
            if self.braces == self.initialiser:
                self.initialiser = None
        elif self.function is not None:
            if self.braces == self.function[2]:
                self.found.append((self.function[0], self.function[1], self.line_of(i)))
                self.function, self.head_start, self.parentheses = None, i + 1, 0
        elif self.parentheses == 0:
            self.head_start = i + 1

    def other(self, i, character):
        if character == "(":
            self.parentheses += 1
        elif character == ")":
            self.parentheses -= 1
        elif self.parentheses <= 0:
            self.head_start, self.parentheses = i + 1, 0


def functions_cc(text):
    """[(name, first line, last line)] of the outermost functions in C or C++ text."""
    return FunctionFinder(without_preprocessor(split_cc(text)[0])).run()


def functions_ts(text):
    """[(name, first line, last line)] of the outermost functions and methods in TypeScript."""
    code = split_cc(text, TOKEN_TS)[0]
    code = re.sub(r"^export ", "       ", code, flags=re.MULTILINE)
    return FunctionFinder(RETURN_TYPE.sub(lambda match: blank(match.group()), code)).run()


def name_of(head):
    match = re.search(r"([\w:~]+(?:\s*operator[^\s(]+)?)\s*\(([^()]*)", head)
    if not match:
        return "a function"
    name = match.group(1)
    if name.startswith(("TEST", "BENCHMARK")):
        return f"{name}({match.group(2).strip()})"
    return name


def functions_python(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.name, node.lineno, node.end_lineno) for node in ast.walk(tree) if isinstance(node, kinds)]
