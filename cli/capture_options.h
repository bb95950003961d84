// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "neurontrace/v1/vocabulary.pb.h"

namespace CLI {
class App;
}  // namespace CLI

// What a capture records, as it is typed.
namespace neurontrace::cli {

struct CaptureOptions {
  // Which workers.
  std::vector<std::string> jobs;
  std::vector<std::string> namespaces;
  std::vector<std::string> pods;
  std::vector<std::string> pod_labels;
  std::vector<std::string> worker_gids;
  std::vector<std::string> instances;
  // What of them.
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  bool all_events = false;
  uint64_t ring_events = 0;
  bool no_framework = false;
  bool no_neuron = false;
  // From when, until when.
  std::string duration;
  std::string executions;
  std::string at_execution;
  std::string bytes_max;
  std::string last;
  bool continuous = false;
  std::string keep;
  std::string keep_bytes;
  bool dry_run = false;
  // On what conditions, under what name.
  std::string require;
  std::string budget_core;
  std::string budget_rate;
  std::string name;
  std::vector<std::string> tags;
  std::string keep_for;
};

// Which workers and cores.
void AddSelectionOptions(CLI::App& command, CaptureOptions& options);
// Which events, in what rings, for how much of the machine.
void AddEventOptions(CLI::App& command, CaptureOptions& options);
// When it begins and ends, and its outcome.
void AddTimeOptions(CLI::App& command, CaptureOptions& options);
// Name, tags, and how many workers it has to have.
void AddConditionOptions(CLI::App& command, CaptureOptions& options);

// INVALID_ARGUMENT where something is not understood or contradicts something else, with the way
// out.
absl::StatusOr<v1::CaptureSpec> SpecOf(const CaptureOptions& options);

// "leaving out allocation events; --all-events takes them", where that comes of what was asked for;
// else empty.
std::string DescribeDefaultFilter(const v1::CaptureSpec& spec);

}  // namespace neurontrace::cli
