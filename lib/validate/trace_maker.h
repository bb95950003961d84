// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "lib/validate/trace_validator.h"

namespace neurontrace {

// Traces made by hand for tests, and the validator's report on them. The numbers of fields are
// written out here, as they are what is tested.
class TraceMaker : public ::testing::Test {
 protected:
  using Fill = std::function<void(protozero::pbf_writer&)>;
  static constexpr uint32_t kSequence = 1;

  static std::string Message(const Fill& fill) {
    std::string bytes;
    protozero::pbf_writer writer(bytes);
    fill(writer);
    return bytes;
  }
  static std::string Framed(const std::string& packet) {
    std::string bytes;
    protozero::pbf_writer(bytes).add_message(1, packet);
    return bytes;
  }
  // Adds a packet; `of_sequence` false: it belongs to no sequence.
  void Packet(const Fill& fill, bool of_sequence = true) {
    trace_ += Framed(Message([&](protozero::pbf_writer& packet) {
      if (of_sequence) packet.add_uint32(10, kSequence);
      fill(packet);
    }));
  }
  // Adds a sequence header: state cleared, times by clock 64, which counts from `at_ns`.
  void Header(uint64_t at_ns = 1'000) {
    Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint32(13, 1);
      packet.add_message(59, Message([](auto& defaults) { defaults.add_uint32(58, 64); }));
      packet.add_message(6, Snapshot({{64, at_ns, true}, {1, at_ns}, {6, at_ns}}));
    });
  }
  struct Clock {
    uint32_t id = 0;
    uint64_t at = 0;
    bool is_incremental = false;
  };
  static std::string Snapshot(const std::vector<Clock>& clocks, uint32_t primary = 1) {
    return Message([&](protozero::pbf_writer& snapshot) {
      for (const Clock& clock : clocks) {
        snapshot.add_message(1, Message([&](protozero::pbf_writer& reading) {
                               reading.add_uint32(1, clock.id);
                               reading.add_uint64(2, clock.at);
                               if (clock.is_incremental) reading.add_bool(3, true);
                             }));
      }
      if (primary != 0) snapshot.add_enum(2, static_cast<int32_t>(primary));
    });
  }
  void Intern(uint32_t field, uint64_t iid, const std::string& text) {
    Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint32(13, 2);
      packet.add_message(12, Message([&](protozero::pbf_writer& data) {
                           data.add_message(field, Message([&](protozero::pbf_writer& entry) {
                                              entry.add_uint64(1, iid);
                                              entry.add_string(2, text);
                                            }));
                         }));
    });
  }
  // Adds a track descriptor.
  void Describe(const Fill& fill) {
    Packet([&](protozero::pbf_writer& packet) { packet.add_message(60, Message(fill)); });
  }
  void Process(uint64_t uuid, int32_t pid, const std::string& name = "process") {
    Describe([&](protozero::pbf_writer& track) {
      track.add_uint64(1, uuid);
      track.add_message(3, Message([&](protozero::pbf_writer& process) {
                          process.add_int32(1, pid);
                          process.add_string(6, name);
                        }));
    });
  }
  void Thread(uint64_t uuid, int32_t pid, int64_t tid, const std::string& name = "thread") {
    Describe([&](protozero::pbf_writer& track) {
      track.add_uint64(1, uuid);
      track.add_message(4, Message([&](protozero::pbf_writer& thread) {
                          thread.add_int32(1, pid);
                          thread.add_int64(2, tid);
                          thread.add_string(5, name);
                        }));
    });
  }
  void Plain(uint64_t uuid, uint64_t parent, const std::string& name, bool is_counter = false,
             uint32_t merge = 2) {
    Describe([&](protozero::pbf_writer& track) {
      track.add_uint64(1, uuid);
      track.add_string(2, name);
      if (parent != 0) track.add_uint64(5, parent);
      if (is_counter) track.add_message(8, std::string());
      track.add_uint32(15, merge);
    });
  }
  // Adds an event `delta_ns` after the one before.
  void Event(uint32_t type, uint64_t uuid, uint64_t delta_ns, const Fill& more = {}) {
    Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(8, delta_ns);
      packet.add_uint32(13, 2);
      packet.add_message(11, Message([&](protozero::pbf_writer& event) {
                           event.add_uint32(9, type);
                           event.add_uint64(11, uuid);
                           if (more) more(event);
                         }));
    });
  }
  static constexpr uint32_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
  static Fill Named(const std::string& name) {
    return [name](protozero::pbf_writer& event) { event.add_string(23, name); };
  }
  // Adds a row for events: track 2, of process 1.
  void Row() {
    Header();
    Process(1, 1);
    Thread(2, 1, 100);
  }

  static TraceReport Validate(std::string file, size_t step = SIZE_MAX) {
    std::string_view rest = file;
    auto report = ValidateTrace([&rest, step](char* out, size_t max) -> absl::StatusOr<size_t> {
      const size_t count = std::min({step, max, rest.size()});
      std::memcpy(out, rest.data(), count);
      rest.remove_prefix(count);
      return count;
    });
    EXPECT_TRUE(report.ok()) << report.status();
    return *std::move(report);
  }
  TraceReport Validate() const { return Validate(trace_); }
  // Returns the checks that found something, in the order of the table.
  static std::vector<std::string> ChecksOf(const TraceReport& report) {
    std::vector<std::string> names;
    for (size_t i = 0; i < static_cast<size_t>(TraceCheck::kCount); ++i) {
      const auto check = static_cast<TraceCheck>(i);
      if (report.findings.count(check) > 0) names.emplace_back(InfoOf(check).name);
    }
    return names;
  }
  std::vector<std::string> Checks() const { return ChecksOf(Validate()); }

  std::string trace_;
};

}  // namespace neurontrace
