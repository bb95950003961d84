// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/trace/daemon_limits.h"

namespace spdlog {
class formatter;
}

namespace neurontrace {

enum class LogFormat {
  kText,  // [2026-11-14 22:13:20.123] [agent] [warning] message
  kJson,  // one object for each line; docs/operator/health.md describes its members
};

// Returns the formatter of LogFormat::kJson. Its members are time (RFC 3339, UTC, microseconds),
// level, program (the logger's name), thread (the kernel's id), source (file:line, if known) and
// message.
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// The log of this process, on stderr. Once it is made, spdlog writes to it through a LineLimiter;
// debug lines are not limited. Lines are cleaned of control characters and cut at
// limits::kLogLineBytesMax. It must outlive all objects that log. Any thread.
class ProgramLog {
 public:
  // Lines name the program by `program`.
  explicit ProgramLog(const std::string& program);

  // Takes effect for the next line; any thread may call.
  void SetLevel(const std::string& level);  // debug, info, warn or error
  // Changes the lines on stderr; recent warnings stay plain text. Any thread may call.
  void SetFormat(LogFormat format);

  // Returns how many lines were suppressed because too many were alike.
  uint64_t left_out() const;
  // Returns the newest warnings and errors as text, oldest first.
  std::vector<std::string> RecentWarnings() const;

 private:
  class Sink;
  const std::shared_ptr<Sink> sink_;
};

}  // namespace neurontrace
