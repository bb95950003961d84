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

// The options of a capture as they are typed. Texts are parsed by SpecOf.
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

// Adds the options that select workers and cores. `options` must outlive the parsing; so it must
// for the functions below.
void AddSelectionOptions(CLI::App& command, CaptureOptions& options);
// Adds the options for event types, ring sizes and budgets.
void AddEventOptions(CLI::App& command, CaptureOptions& options);
// Adds the options for begin, end and retention.
void AddTimeOptions(CLI::App& command, CaptureOptions& options);
// Adds the options for name, tags, and the number of workers that must take part.
void AddConditionOptions(CLI::App& command, CaptureOptions& options);

// Returns the capture to ask for. Fails with INVALID_ARGUMENT and a way out if a value is not
// understood or contradicts another.
absl::StatusOr<v1::CaptureSpec> SpecOf(const CaptureOptions& options);

// Returns "leaving out allocation events; --all-events takes them" if the capture has the default
// filter, else "".
std::string DescribeDefaultFilter(const v1::CaptureSpec& spec);

}  // namespace neurontrace::cli
