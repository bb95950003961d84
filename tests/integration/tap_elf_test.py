# SPDX-License-Identifier: Apache-2.0
"""What libneurontrace_tap.so and libneurontrace_annotate.so bring into a worker, read from the ELF files themselves."""

import os
import re
import subprocess
import unittest

INTERPOSED = {
    "nrt_init", "nrt_close", "nrt_build_global_comm", "nrt_load_collectives", "nrt_cc_global_comm_init",
    "nrt_sys_trace_start", "nrt_sys_trace_stop", "nrt_inspect_begin", "nrt_inspect_begin_with_options",
    "nrt_inspect_stop",
}
# For hosts whose calls cannot be interposed; see docs/user/tap.md.
FOR_HOSTS = {"neurontrace_tap_runtime_initialized", "neurontrace_tap_runtime_closing", "neurontrace_tap_version"}
# What NVTX looks for in a library of injection.
FOR_NVTX = {"InitializeInjectionNvtx2", "InitializeInjectionNvtx2_fnptr", "InitializeInjectionNvtxExtension"}
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# CentOS 7's, and the first that glibc has for aarch64: every container that runs can load the two.
GLIBC_MAX = (2, 17)
# In libdl and libpthread before glibc 2.34: weak, so that a program that needs neither of them starts with the library.
FROM_LIBPTHREAD = {"pthread_attr_setstacksize", "pthread_create"}
FROM_LIBDL = {"dladdr", "dlclose", "dlopen", "dlsym"}
# What libc.so.6 of glibc 2.17 has of libpthread.
PTHREAD_IN_OLD_LIBC = {
    "pthread_attr_destroy", "pthread_attr_init", "pthread_attr_setdetachstate", "pthread_cond_broadcast",
    "pthread_cond_timedwait", "pthread_cond_wait", "pthread_equal", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_self",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Elf:
    """The tests of one library; not a test case itself."""

    @classmethod
    def setUpClass(cls):
        cls.dynamic = run("readelf", "-dW", cls.library)
        cls.symbols = []
        for line in run("readelf", "-W", "--dyn-syms", cls.library).splitlines():
            # Number, value, size, type (of one word or three), binding, visibility, section, name.
            match = re.match(r"\s*[0-9]+: .* (?:DEFAULT|PROTECTED|HIDDEN|INTERNAL) +(\S+) (\S+)", line)
            if match:
                cls.symbols.append(match.groups())

    def test_needs_the_c_library_only(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", self.dynamic))
        self.assertTrue(needed)
        self.assertLessEqual(needed, NEEDED)

    def test_exports_what_others_call_and_nothing_else(self):
        exported = {name for section, name in self.symbols if section not in ("UND", "ABS")}
        self.assertEqual(exported, self.exports)

    def test_exports_without_versions_so_that_any_reference_is_satisfied(self):
        self.assertNotIn("VERDEF", self.dynamic)

    def test_needs_no_glibc_newer_than_its_limit(self):
        versions = {tuple(int(part) for part in text.split("."))
                    for text in re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", self.library))}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), GLIBC_MAX)

    def test_needs_no_more_of_libdl_and_libpthread_than_a_process_has(self):
        bindings = {}
        for line in run("readelf", "-W", "--dyn-syms", self.library).splitlines():
            match = re.match(r"\s*[0-9]+: .* (GLOBAL|WEAK) +\S+ +UND ([A-Za-z0-9_]+)", line)
            if match:
                bindings[match[2]] = match[1]
        self.assertEqual({name for name in bindings if name in FROM_LIBPTHREAD | FROM_LIBDL}, self.moved_into_libc)
        strong = {name for name, binding in bindings.items()
                  if name.startswith(("dl", "pthread_", "sem_")) and binding == "GLOBAL"}
        self.assertLessEqual(strong, PTHREAD_IN_OLD_LIBC)

    def test_has_no_cxx_symbol_left_open(self):
        undefined = [name for section, name in self.symbols if section == "UND"]
        self.assertFalse([name for name in undefined if name.startswith(("_Z", "__cxa_throw", "__gxx"))])

    def test_stays_loaded_and_binds_at_once(self):
        self.assertIn("NODELETE", self.dynamic)
        self.assertIn("BIND_NOW", self.dynamic)
        self.assertNotIn("TEXTREL", self.dynamic)

    def test_carries_no_executable_stack(self):
        stack = [line for line in run("readelf", "-lW", self.library).splitlines() if "GNU_STACK" in line]
        self.assertTrue(stack)
        self.assertNotIn("E", stack[0].split()[-2])


class Tap(Elf, unittest.TestCase):
    library = os.environ["NT_TAP_LIBRARY"]
    exports = INTERPOSED | FOR_HOSTS
    moved_into_libc = FROM_LIBPTHREAD | FROM_LIBDL


class Annotate(Elf, unittest.TestCase):
    library = os.environ["NT_ANNOTATE_LIBRARY"]
    exports = FOR_NVTX
    moved_into_libc = FROM_LIBPTHREAD


if __name__ == "__main__":
    unittest.main()
