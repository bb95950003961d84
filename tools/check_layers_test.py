#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: check_layers.py finds each kind of wrong include and stays silent on right ones.
Method: small trees in a temporary folder, checked with the repository's own tools/layers.txt."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def real_table():
    with open(os.path.join(HERE, "layers.txt"), encoding="utf-8") as file:
        return file.read()


class Tree(unittest.TestCase):
    """A temporary repository: write files, check, compare findings."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("tools/layers.txt", real_table())

    def write(self, path, text=""):
        full = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self):
        with open(os.path.join(self.folder.name, "tools/layers.txt"), encoding="utf-8") as file:
            layers = check_layers.Layers.parse(file.read())
        return check_layers.Checker(self.folder.name, layers).run()

    def assert_clean(self):
        self.assertEqual(self.check(), [])

    def assert_one(self, where, *words):
        findings = self.check()
        self.assertEqual(len(findings), 1, findings)
        self.assertTrue(findings[0].startswith(where + ": "), findings[0])
        for word in words:
            self.assertIn(word, findings[0])


class OurHeaders(Tree):
    def test_down_the_layers_is_allowed(self):
        self.write("lib/base/clock.h")
        self.write("lib/trace/event.h", '#include <string>\n#include "absl/status/status.h"\n#include "lib/base/clock.h"\n')
        self.write("aggregator/store/chunk_store.cc", '#include "lib/trace/event.h"\n#include <rocksdb/db.h>\n')
        self.assert_clean()

    def test_up_the_layers_is_refused_with_the_line(self):
        self.write("lib/trace/event.h")
        self.write("lib/base/clock.h", '#pragma once\n#include "lib/trace/event.h"\n')
        self.assert_one("lib/base/clock.h:2", '"lib/trace/event.h"', "base may include only itself")

    def test_sideways_is_refused(self):
        self.write("aggregator/store/chunk_store.h")
        self.write("aggregator/session/capture.cc", '#include "aggregator/store/chunk_store.h"\n')
        self.assert_one("aggregator/session/capture.cc:1", "aggregator/session may include only lib/trace lib/base")

    def test_angle_brackets_do_not_hide_our_headers(self):
        self.write("agent/agent.h")
        self.write("lib/base/clock.h", "#include <agent/agent.h>\n")
        self.assert_one("lib/base/clock.h:1", "agent/agent.h")

    def test_a_folder_below_a_tree_belongs_to_the_tree(self):
        self.write("tools/layers.txt", "a/**:\nb: a/**\n")
        self.write("a/x.h")
        self.write("a/c/y.h", '#include "a/x.h"\n')
        self.write("b/z.cc", '#include "a/c/y.h"\n')
        self.assert_clean()

    def test_a_folder_with_a_line_of_its_own_does_not_have_the_rights_of_its_parent(self):
        self.write("agent/source/source.h")
        self.write("agent/source/neuron/decode/decoder.h", '#include "agent/source/source.h"\n')
        self.write("agent/source/neuron/capture/part.cc", '#include "agent/source/neuron/decode/decoder.h"\n')
        self.write("agent/control/control.cc", '#include "agent/source/neuron/decode/decoder.h"\n')
        self.assert_clean()
        self.write("agent/source/framework/reader.cc", '#include "agent/source/neuron/decode/decoder.h"\n')
        self.assert_one("agent/source/framework/reader.cc:1", "agent/source/framework may include only agent/source")

    def test_generated_messages_count_as_proto(self):
        self.write("lib/wire/codec.cc", '#include "neurontrace/v1/chunk.pb.h"\n')
        self.assert_clean()
        self.write("aggregator/session/session.cc", '#include "neurontrace/v1/chunk.pb.h"\n')
        self.assert_one("aggregator/session/session.cc:1", "chunk.pb.h", "may include only lib/trace lib/base")

    def test_a_header_that_does_not_exist_is_refused(self):
        self.write("lib/trace/event.h", '#include "lib/base/gone.h"\n')
        self.assert_one("lib/trace/event.h:1", "not in this repository")

    def test_relative_includes_are_refused(self):
        self.write("lib/base/clock.h")
        self.write("lib/base/clock.cc", '#include "clock.h"\n')
        self.assert_one("lib/base/clock.cc:1", "from the repository root")

    def test_tests_may_include_anything_and_nothing_includes_tests(self):
        self.write("agent/agent.h")
        self.write("tests/sim/fleet.h", '#include "agent/agent.h"\n#include <grpcpp/grpcpp.h>\n')
        self.assert_clean()
        self.write("cli/main.cc", '#include "tests/sim/fleet.h"\n')
        self.assert_one("cli/main.cc:1", "is for tests")

    def test_fakes_are_for_tests(self):
        self.write("lib/base/fake_clock.h")
        self.write("lib/trace/event_test.cc", '#include "lib/base/fake_clock.h"\n#include <gtest/gtest.h>\n')
        self.assert_clean()
        self.write("lib/trace/event.cc", '#include "lib/base/fake_clock.h"\n')
        self.assert_one("lib/trace/event.cc:1", "production code may not include it")


class Tap(Tree):
    def test_tap_includes_only_its_own_headers_and_the_checksum(self):
        self.write("lib/base/clock.h")
        self.write("lib/base/crc32c.h")
        self.write("tap/ring.h", "#include <sys/mman.h>\n#include <linux/memfd.h>\n#include <atomic>\n")
        self.write("tap/tap.cc", '#include "tap/ring.h"\n#include "lib/base/crc32c.h"\n')
        self.assert_clean()
        self.write("tap/tap.cc", '#include "lib/base/clock.h"\n')
        self.assert_one("tap/tap.cc:1", "tap may include only lib/base/crc32c.h")

    def test_tap_uses_no_third_party_but_in_its_tests(self):
        self.write("tap/ring_test.cc", "#include <gtest/gtest.h>\n")
        self.write("tap/ring_fixture.h", "#include <gtest/gtest.h>\n")
        self.assert_clean()
        self.write("tap/tap.cc", '#include "absl/status/status.h"\n')
        self.assert_one("tap/tap.cc:1", "only the C and C++ standard libraries")

    def test_the_agent_sees_only_the_shared_headers_of_the_tap(self):
        for header in ("buffer_format", "agent_protocol", "drain_thread"):
            self.write(f"tap/{header}.h")
        self.write("agent/source/neuron/tap/reader.cc",
                   '#include "tap/buffer_format.h"\n#include "tap/agent_protocol.h"\n')
        self.assert_clean()
        self.write("agent/source/neuron/tap/other.cc", '#include "tap/drain_thread.h"\n')
        self.assert_one("agent/source/neuron/tap/other.cc:1", "tap/drain_thread.h")


class Libraries(Tree):
    def test_rocksdb_stays_in_the_store(self):
        for spelling in ("<rocksdb/db.h>", '"rocksdb/db.h"'):
            self.write("aggregator/timeline/reader.cc", f"#include {spelling}\n")
            self.assert_one("aggregator/timeline/reader.cc:1", "for aggregator/store alone")

    def test_grpc_stays_at_the_doors(self):
        text = '#include <grpcpp/grpcpp.h>\n'
        for path in ("lib/wire/channel.cc", "agent/upload/uploader.cc", "aggregator/ingest/service.cc",
                     "aggregator/operator/service.cc", "cli/status.cc", "agent/main.cc", "aggregator/main.cc"):
            self.write(path, text)
        self.assert_clean()
        self.write("agent/spool/spool.cc", text)
        self.assert_one("agent/spool/spool.cc:1", "grpcpp/grpcpp.h")

    def test_generated_services_count_as_grpc(self):
        self.write("cli/main.cc", '#include "neurontrace/v1/operator.grpc.pb.h"\n')
        self.assert_clean()
        self.write("agent/ranks/resolver.cc", '#include "neurontrace/v1/operator.grpc.pb.h"\n')
        self.assertEqual(len(self.check()), 2)  # neither proto nor gRPC


class Folders(Tree):
    def test_a_folder_that_is_not_in_the_table_is_refused(self):
        self.write("common/strings.h")
        self.assert_one("common/strings.h:1", "not in tools/layers.txt")

    def test_a_new_folder_under_a_composition_root_is_refused(self):
        self.write("agent/misc/strings.h")
        self.assert_one("agent/misc/strings.h:1", "'agent/misc' is not in tools/layers.txt")

    def test_build_output_is_not_read(self):
        self.write("build/release/gen/x.h", '#include "nowhere/x.h"\n')
        self.assert_clean()

    def test_cmake_globs_are_refused(self):
        self.write("lib/base/CMakeLists.txt", "set(A b)\n  file(GLOB_RECURSE sources *.cc)\n")
        self.assert_one("lib/base/CMakeLists.txt:2", "file(GLOB")

    def test_cmake_globs_are_allowed_with_a_reason(self):
        self.write("lib/base/CMakeLists.txt", "file(GLOB a  # tidy: allow(glob) only inputs\n  *.ts)\n")
        self.assert_clean()
        self.write("lib/base/CMakeLists.txt", "file(GLOB a  # tidy: allow(glob)\n  *.ts)\n")
        self.assert_one("lib/base/CMakeLists.txt:1", "file(GLOB")

    def test_proto_imports_only_proto(self):
        self.write("proto/neurontrace/v1/a.proto",
                   'import "neurontrace/v1/b.proto";\nimport "google/protobuf/duration.proto";\n')
        self.assert_clean()
        self.write("proto/neurontrace/v1/a.proto", 'import "perfetto/trace.proto";\n')
        self.assert_one("proto/neurontrace/v1/a.proto:1", "perfetto/trace.proto")


class Table(Tree):
    def test_a_circle_is_refused(self):
        with self.assertRaisesRegex(check_layers.TableError, "circle: a -> b -> a"):
            check_layers.Layers.parse("a: b\nb: a\n")

    def test_a_circle_through_a_tree_is_refused(self):
        with self.assertRaisesRegex(check_layers.TableError, "circle: a -> b/c -> a"):
            check_layers.Layers.parse("a: b/**\nb/c: a\n")

    def test_one_file_may_include_the_folders_that_include_its_own(self):
        self.write("tools/layers.txt", "a:\na/b: a\na/all.cc: a/**\n")
        self.write("a/x.h")
        self.write("a/b/y.h", '#include "a/x.h"\n')
        self.write("a/all.cc", '#include "a/x.h"\n#include "a/b/y.h"\n')
        self.assert_clean()
        self.write("a/other.cc", '#include "a/b/y.h"\n')
        self.assert_one("a/other.cc:1", "a may include only itself")

    def test_a_line_for_a_header_is_refused(self):
        with self.assertRaisesRegex(check_layers.TableError, "layers.txt:2: a header"):
            check_layers.Layers.parse("a:\na/x.h: a\n")

    def test_a_second_line_for_a_folder_is_refused(self):
        with self.assertRaisesRegex(check_layers.TableError, "layers.txt:2: second line"):
            check_layers.Layers.parse("a:\na:\n")

    def test_tests_of_a_folder_can_be_given_more(self):
        self.write("tools/layers.txt", "a:\nb:\ntest b: a\n")
        self.write("a/x.h")
        self.write("b/y_test.cc", '#include "a/x.h"\n')
        self.assert_clean()
        self.write("b/y.cc", '#include "a/x.h"\n')
        self.assert_one("b/y.cc:1", '"a/x.h"')

    def test_exit_codes(self):
        def run():
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return check_layers.main(["--root", self.folder.name])

        self.assertEqual(run(), 0)
        self.write("common/x.h")
        self.assertEqual(run(), 1)
        self.write("tools/layers.txt", "no colon here\n")
        self.assertEqual(run(), 2)


if __name__ == "__main__":
    unittest.main()
