// SPDX-License-Identifier: Apache-2.0
#include "cli/absent_workers.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/elf_file.h"

namespace neurontrace::cli {
namespace {

// The kernel reads no more of a script's first line (BINPRM_BUF_SIZE in linux/binfmts.h); a longer
// one is not executed as it is written.
constexpr size_t kShebangBytesMax = 256;  // as the kernel has it

// Returns the interpreter of a script: "/usr/bin/env" of "#!/usr/bin/env python3". Returns "" if
// the file is not a script or cannot be read.
std::string InterpreterOfScript(HostView& host, const std::string& path) {
  const std::string start = ReadProcFile(host, path, kShebangBytesMax);
  if (!start.starts_with("#!")) return "";
  const size_t from = start.find_first_not_of(" \t", 2);
  if (from == std::string::npos) return "";
  return start.substr(from, start.find_first_of(" \t\n", from) - from);
}

}  // namespace

std::string PreloadObstacle(HostView& host, const std::string& path) {
  // The kernel starts a script's interpreter, so the loader of the interpreter decides.
  const std::string interpreter = InterpreterOfScript(host, path);
  const std::string& program = interpreter.empty() ? path : interpreter;
  const auto about = host.Examine(program);
  // The loader's secure mode drops paths from LD_PRELOAD. A program of the user's own changes
  // nothing, so its bits are harmless.
  const bool changes_user =
      about && (about->mode & (S_ISUID | S_ISGID)) != 0 && host.user() != about->uid;
  if (changes_user) {
    return fmt::format(
        "{} is setuid or setgid, so the loader ignores LD_PRELOAD with a path; run the command "
        "that it starts under `neurontrace record` instead",
        program);
  }
  // A file that cannot be read as ELF may still start, for instance from another mount namespace:
  // an unknown obstacle is none.
  const auto elf = ReadElf(host, program);
  if (!elf.ok()) return "";
  if (!elf->IsOfThisMachine()) {
    return fmt::format("{} is built for a different processor architecture than the tap", program);
  }
  if (elf->interpreter.empty()) {
    return fmt::format(
        "{} is statically linked, so no library can be preloaded into it; link libnrt.so.1 and the "
        "C library dynamically",
        program);
  }
  if (elf->interpreter.find("ld-linux") == std::string::npos) {
    return fmt::format("{} uses a different C library (its loader is {}); the tap needs glibc",
                       program, elf->interpreter);
  }
  return "";
}

std::vector<std::string> ExplainNoWorker(const ProcessTree& tree, const std::string& obstacle) {
  std::vector<std::string> reasons;
  // The explanations are ordered from certain to likely: a known obstacle and processes without the
  // tap are observations, the rest is inferred.
  if (!obstacle.empty()) reasons.push_back(obstacle);
  for (const ProcessSeen& process : tree.untapped()) {
    reasons.push_back(
        fmt::format("process {} ({}) had libnrt.so.1 but no tap: something removed LD_PRELOAD from "
                    "its environment (sudo, env -i, a container, a job launcher); set it there to "
                    "the command's value",
                    process.pid, process.name));
  }
  if (!reasons.empty()) return reasons;
  if (!tree.has_seen_tap() && tree.has_seen_loaded()) {
    reasons.push_back(
        "none of its processes loaded the tap; look for \"cannot be preloaded\" on stderr, or "
        "check the library with `neurontrace doctor`");
  } else if (!tree.has_seen_runtime()) {
    reasons.push_back(
        "none of its processes loaded libnrt.so.1: it did not use the Neuron Runtime, or only very "
        "briefly");
  } else {
    reasons.push_back(
        "libnrt.so.1 and the tap were loaded, but the tap saw no nrt_init: the call failed, or "
        "bypassed the tap through dlsym (see docs/user/tap.md)");
  }
  return reasons;
}

}  // namespace neurontrace::cli
