#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measure_tree  # noqa: E402


class Rows(unittest.TestCase):
    def test_counts_production_code_alone(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"a.h": "// What it is.\n// And why.\nint A();\nint B();\n",
                               "a.cc": '#include "a.h"\nint A() {\n  assert(true);\n  return 1;\n}\n',
                               "user.cc": '#include "a.h"\n', "a_test.cc": '#include "a.h"\n' * 50}.items():
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            rows = dict(measure_tree.rows(root, []))
        self.assertEqual(rows["files, mean lines"], "3, 3")
        self.assertEqual(rows["function median / p90 / max"], "4 / 4 / 4")
        self.assertEqual(rows["comment share, headers / .cc"], "50.0 % / 0.0 %")
        self.assertEqual(rows["headers with a single other includer"], "100 %")
        self.assertEqual(rows["assertions of invariants"], 1)


if __name__ == "__main__":
    unittest.main()
