# SPDX-License-Identifier: Apache-2.0
"""A metric that the code makes is described in docs/operator/metrics.md, and one described there is made."""

import re

PAGE = "docs/operator/metrics.md"
# The last are those of Prometheus' own clients.
PROCESS = "process_(?:cpu_seconds_total|(?:resident|virtual)_memory_bytes|threads|(?:open|max)_fds|start_time_seconds)"
NAME = f"(neurontrace_(?:agent|aggregator|build)_[a-z0-9_]+|{PROCESS})"
# Old names of metrics, which CHANGELOG.md lists.
ALIASES = "lib/health/metric_aliases.cc"
IN_CODE = re.compile(f'"{NAME}"')
IN_PAGE = re.compile(f"`{NAME}[`{{]")


def check(sources):
    """[(path, line, message)] over the whole tree."""
    made, described = {}, {}
    for source in sources:
        if source.language == "cc" and not source.is_test and source.path != ALIASES:
            note(source, IN_CODE, made)
        elif source.path == PAGE:
            note(source, IN_PAGE, described)
    found = [(*made[name], f"{name} is not described in {PAGE}") for name in made.keys() - described.keys()]
    found += [(*described[name], f"no code makes {name}") for name in described.keys() - made.keys()]
    return sorted(found)


def note(source, pattern, where):
    for number, line in enumerate(source.lines, 1):
        for name in pattern.findall(line):
            where.setdefault(name, (source.path, number))
