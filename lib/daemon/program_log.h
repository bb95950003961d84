// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/common.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/daemon_limits.h"

namespace spdlog {
class formatter;
}

namespace neurontrace {

// Decides which log lines are written, so that a repeated problem neither fills a disk nor hides
// other lines: see limits::kLogLinesOfKindAtOnce. Two token buckets, one for the line's kind and
// one for all lines. One thread at a time.
class LineLimiter {
 public:
  // What to do with a line.
  struct Verdict {
    bool passes = false;
    uint64_t left_out = 0;  // lines of this kind since the last one that passed
  };
  // Judges a line; `text` is the line without its time. `monotonic_ns` must not decrease.
  Verdict Judge(std::string_view text, uint64_t monotonic_ns);

  // Returns how many lines were suppressed since the start.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Bucket {
    bool Take(uint64_t monotonic_ns, uint32_t at_once, uint32_t per_second);

    double tokens = 0;
    uint64_t filled_ns = 0;
  };
  struct Kind {
    uint64_t hash = 0;  // 0: free
    Bucket bucket;
    uint64_t left_out = 0;
  };

  std::array<Kind, limits::kLogKinds> kinds_;  // by hash
  Bucket all_;
  bool began_ = false;
  uint64_t left_out_ = 0;
};

enum class LogFormat {
  kText,  // [2026-11-14 22:13:20.123] [agent] [warning] message
  kJson,  // one object for each line; docs/operator/health.md describes its members
};

// Returns the formatter of LogFormat::kJson. Its members are time (RFC 3339, UTC, microseconds),
// level, program (the logger's name), thread (the kernel's id), source (file:line, if known) and
// message.
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// The log of this process, on stderr. Once it is made, spdlog writes to it, through a LineLimiter;
// debug lines are not limited. It must outlive all objects that log. Any thread.
class ProgramLog {
 public:
  // Lines name the program by `program`.
  explicit ProgramLog(const std::string& program);

  void SetLevel(const std::string& level);  // debug, info, warn or error
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
