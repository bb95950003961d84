# SPDX-License-Identifier: Apache-2.0
"""What libneurontrace_tap.so brings into a worker, read from the ELF file itself."""

import os
import re
import subprocess
import unittest

LIBRARY = os.environ["NT_TAP_LIBRARY"]
INTERPOSED = {
    "nrt_init", "nrt_close", "nrt_build_global_comm", "nrt_load_collectives", "nrt_cc_global_comm_init",
    "nrt_sys_trace_start", "nrt_sys_trace_stop", "nrt_inspect_begin", "nrt_inspect_begin_with_options",
    "nrt_inspect_stop",
}
# For hosts whose calls cannot be interposed; see docs/user/tap.md.
FOR_HOSTS = {"neurontrace_tap_runtime_initialized", "neurontrace_tap_runtime_closing", "neurontrace_tap_version"}
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# CentOS 7's, and the first that glibc has for aarch64: every container that runs can load the tap.
GLIBC_MAX = (2, 17)
# In libdl and libpthread before glibc 2.34: weak, so that a program that needs neither of them starts with the tap.
MOVED_INTO_LIBC = {"dladdr", "dlclose", "dlopen", "dlsym", "pthread_attr_setstacksize", "pthread_create"}
# What libc.so.6 of glibc 2.17 has of libpthread.
PTHREAD_IN_OLD_LIBC = {
    "pthread_attr_destroy", "pthread_attr_init", "pthread_attr_setdetachstate", "pthread_cond_broadcast",
    "pthread_cond_timedwait", "pthread_cond_wait", "pthread_equal", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_self",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Elf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dynamic = run("readelf", "-dW", LIBRARY)
        cls.symbols = []
        for line in run("readelf", "-W", "--dyn-syms", LIBRARY).splitlines():
            # Number, value, size, type (of one word or three), binding, visibility, section, name.
            match = re.match(r"\s*[0-9]+: .* (?:DEFAULT|PROTECTED|HIDDEN|INTERNAL) +(\S+) (\S+)", line)
            if match:
                cls.symbols.append(match.groups())

    def test_needs_the_c_library_only(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", self.dynamic))
        self.assertTrue(needed)
        self.assertLessEqual(needed, NEEDED)

    def test_exports_what_it_interposes_and_nothing_else(self):
        exported = {name for section, name in self.symbols if section not in ("UND", "ABS")}
        self.assertEqual(exported, INTERPOSED | FOR_HOSTS)

    def test_exports_without_versions_so_that_any_reference_is_satisfied(self):
        self.assertNotIn("VERDEF", self.dynamic)

    def test_needs_no_glibc_newer_than_its_limit(self):
        versions = {tuple(int(part) for part in text.split("."))
                    for text in re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", LIBRARY))}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), GLIBC_MAX)

    def test_needs_no_more_of_libdl_and_libpthread_than_a_process_has(self):
        bindings = {}
        for line in run("readelf", "-W", "--dyn-syms", LIBRARY).splitlines():
            match = re.match(r"\s*[0-9]+: .* (GLOBAL|WEAK) +\S+ +UND ([A-Za-z0-9_]+)", line)
            if match:
                bindings[match[2]] = match[1]
        self.assertEqual({name for name in bindings if name in MOVED_INTO_LIBC}, MOVED_INTO_LIBC)
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
        stack = [line for line in run("readelf", "-lW", LIBRARY).splitlines() if "GNU_STACK" in line]
        self.assertTrue(stack)
        self.assertNotIn("E", stack[0].split()[-2])


if __name__ == "__main__":
    unittest.main()
