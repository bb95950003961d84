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

// Options of a capture: which workers, which events, when, and on what conditions. Used by
// `capture`, `capture start` and `flight-recorder on`.
namespace neurontrace::cli {

// The options as they are typed. An empty text or 0 means that the option was not given; texts are
// parsed by SpecOf. Lists of instances, cores and event types may contain comma-separated
// values.
struct CaptureOptions {
  // Which workers.
  std::vector<std::string> jobs;
  std::vector<std::string> namespaces;
  std::vector<std::string> pods;
  std::vector<std::string> pod_labels;
  std::vector<std::string> worker_gids;
  std::vector<std::string> instances;
  // Which cores and events of these workers.
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  bool all_events = false;
  // Events of the runtime's ring of each core; 0: the runtime's default.
  uint64_t ring_events = 0;
  bool no_framework = false;
  // Frameworks that are asked for traces, and for which steps: "4711" or "next".
  std::string framework;
  std::string at_step;
  std::string steps;
  bool framework_stacks = false;
  bool no_neuron = false;
  // When recording begins and ends: durations such as "30s", sizes such as "2GB", execution
  // numbers.
  std::string duration;
  std::string executions;
  std::string at_execution;
  std::string bytes_max;
  std::string last;
  bool continuous = false;
  std::string keep;
  std::string keep_bytes;
  bool dry_run = false;
  // On what conditions, under which name, and for how long it is kept.
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
// Adds the options for begin, end and retention, and for traces of frameworks.
void AddTimeOptions(CLI::App& command, CaptureOptions& options);
// Adds the options for name, tags, and the number of workers that must take part.
void AddConditionOptions(CLI::App& command, CaptureOptions& options);

// Returns the capture to ask for. Fails with INVALID_ARGUMENT and a remedy if a value is malformed
// or contradicts another. The aggregator checks the request itself again. Pure.
absl::StatusOr<v1::CaptureSpec> SpecOf(const CaptureOptions& options);

// Returns "omitting allocation events; --all-events includes them" if the capture has the default
// filter, else "".
std::string DescribeDefaultFilter(const v1::CaptureSpec& spec);

}  // namespace neurontrace::cli
