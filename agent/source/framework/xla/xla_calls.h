// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace neurontrace {

// What one process is asked for. A plain value.
struct XlaOrder {
  // Names the session, its folder in the framework directory, and this order; it is never used
  // twice. A name of a file.
  std::string session;
  std::string address;  // of its ProfilerService, as gRPC names it: "ipv4:127.0.0.1:9012"
  uint64_t begin_realtime_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t timeout_ns = 0;      // of the call, from now on
  size_t answer_bytes_max = 0;  // a longer answer is refused
  bool with_stacks = false;     // calls of Python functions, too
};

// How an order ended.
struct XlaAnswer {
  enum class Kind : uint8_t {
    kFailed,     // the call; `status` is that of gRPC
    kSaved,      // the answer's XSpace is in the folder of the session
    kWithout,    // it answered without an XSpace, as servers do that write the file themselves
    kNotXSpace,  // what it answered with is something else, and was not kept
    kNotSaved,   // the file could not be written; `status` explains it
  };
  Kind kind = Kind::kFailed;
  absl::Status status;  // messages are clean and short
  uint64_t bytes = 0;   // of what it answered with
};

// Receives answers on the sequence on which the order was given.
class XlaAnswers {
 public:
  virtual ~XlaAnswers() = default;
  virtual void OnAnswer(const std::string& session, const XlaAnswer& answer) = 0;
};

// Calls of ProfilerServices. Used on one sequence; no function blocks but the destructor, which
// ends all calls without an answer.
class XlaCalls {
 public:
  virtual ~XlaCalls() = default;

  // Asks the process to record. `answers`, which outlives this, gets exactly one answer, never
  // within this call. Requires that the session is new.
  virtual void Begin(const XlaOrder& order, XlaAnswers& answers) = 0;
  // Has the session end now and answer with what it has recorded. Ignored if it is over. If the
  // process cannot be told, the session ends when it was to.
  virtual void End(const std::string& session) = 0;
  // Ends the call, which is then answered with CANCELLED. Ignored if it is over.
  virtual void Cancel(const std::string& session) = 0;
};

}  // namespace neurontrace
