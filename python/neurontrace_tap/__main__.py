# SPDX-License-Identifier: Apache-2.0
"""Prints the environment as lines for a shell: eval "$(python -m neurontrace_tap)"."""

import shlex

from neurontrace_tap import environment

for name, value in environment().items():
    print(f"export {name}={shlex.quote(value)}")
