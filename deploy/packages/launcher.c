// SPDX-License-Identifier: Apache-2.0
// bin/PROGRAM of the relocatable archive: runs lib/neurontrace/programs/PROGRAM with the C library
// and the loader that come with the archive, so that neither has to be the one of the system.
// Linked statically.
//
// The loader is executed under the program's name (libexec/PROGRAM is a link to it): the kernel and
// ps then show that name, and /proc/self/exe leads to this archive.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPathBytes = PATH_MAX + 64, kFixedArguments = 8 };

static const char* g_program = "neurontrace";

static int Fail(const char* what, int error) {
  fprintf(stderr, "%s: %s: %s\n", g_program, what, strerror(error));
  return 1;
}

int main(int argc, char** argv) {
  char root[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", root, sizeof root);
  if (n <= 0) return Fail("cannot read /proc/self/exe", errno);
  if ((size_t)n >= sizeof root) return Fail("/proc/self/exe", ENAMETOOLONG);
  root[n] = '\0';

  // ROOT/bin/PROGRAM
  char program[PATH_MAX];
  for (int level = 0; level < 2; ++level) {
    char* slash = strrchr(root, '/');
    if (slash == NULL) return Fail("/proc/self/exe", EINVAL);
    if (level == 0) {
      memcpy(program, slash + 1, strlen(slash + 1) + 1);  // a part of root, which is as long
      g_program = program;
    }
    *slash = '\0';
  }

  char loader[2 * kPathBytes], libraries[kPathBytes], real[2 * kPathBytes], programs[kPathBytes];
  snprintf(loader, sizeof loader, "%s/libexec/%s", root, program);
  snprintf(libraries, sizeof libraries, "%s/lib/neurontrace", root);
  snprintf(real, sizeof real, "%s/lib/neurontrace/programs/%s", root, program);
  snprintf(programs, sizeof programs, "%s/bin", root);

  // `neurontrace record` starts the others beside /proc/self/exe, which is the loader.
  if (setenv("NEURONTRACE_PROGRAMS", programs, 0) != 0) return Fail("cannot set a variable", errno);

  char** arguments = calloc((size_t)argc + kFixedArguments, sizeof *arguments);
  if (arguments == NULL) return Fail("cannot start", ENOMEM);
  int at = 0;
  arguments[at++] = argv[0] != NULL ? argv[0] : program;
  arguments[at++] = "--inhibit-cache";  // the system's libraries are for the system's C library
  arguments[at++] = "--library-path";
  arguments[at++] = libraries;
  arguments[at++] = "--argv0";
  arguments[at] = arguments[0];
  ++at;
  arguments[at++] = real;
  for (int i = 1; i < argc; ++i) arguments[at++] = argv[i];
  execv(loader, arguments);
  return Fail(loader, errno);
}
