// SPDX-License-Identifier: Apache-2.0
#include "cli/selection_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace neurontrace::cli {
namespace {

// Facts whose value is a name of the whole job. Others, such as namespace and pod, name only parts
// of it.
constexpr std::array<std::string_view, 4> kJobKeys = {"job", "slurm", "torchelastic", "comm"};

bool IsNameOfJob(const v1::KeyValue& fact) {
  return std::find(kJobKeys.begin(), kJobKeys.end(), fact.key()) != kJobKeys.end();
}

// Returns the fact in the form that --job accepts.
std::string FormatFact(const v1::KeyValue& fact) { return fact.key() + "=" + fact.value(); }

// Appends a part to a list, unless it is empty.
void Append(const std::string& separator, const std::string& words, std::string& text) {
  if (words.empty()) return;
  text += (text.empty() ? "" : separator) + words;
}

// Returns the selected ranks as typed: "0-7,64".
std::string FormatRanges(const v1::CaptureSpec& spec) {
  std::string text;
  for (const v1::GidRange& range : spec.worker_gids()) {
    Append(",",
           range.first() == range.last() ? std::to_string(range.first())
                                         : fmt::format("{}-{}", range.first(), range.last()),
           text);
  }
  return text;
}

}  // namespace

std::string FormatSelection(const v1::CaptureSpec& spec) {
  std::string text;
  if (!spec.job().empty()) text = "job " + spec.job();
  for (const v1::KeyValue& fact : spec.job_facts()) Append(", ", FormatFact(fact), text);
  if (!spec.worker_gids().empty()) Append(", ", "ranks " + FormatRanges(spec), text);
  if (!spec.instance_ids().empty()) {
    std::string instances;
    for (const std::string& id : spec.instance_ids()) Append(",", id, instances);
    Append(", ", "instances " + instances, text);
  }
  if (!spec.neuron_cores().empty()) {
    std::string cores;
    for (const uint32_t core : spec.neuron_cores()) Append(",", std::to_string(core), cores);
    Append(", ", "cores " + cores, text);
  }
  return text;
}

std::string FormatJobs(const v1::CaptureSpec& spec) {
  std::string text = spec.job();
  for (const v1::KeyValue& fact : spec.job_facts()) {
    if (IsNameOfJob(fact)) Append(" ", FormatFact(fact), text);
  }
  return text;
}

bool NamesJob(const v1::CaptureSpec& spec, const std::string& job) {
  if (spec.job() == job) return true;
  // A user may give the name alone, or with its key.
  return std::any_of(spec.job_facts().begin(), spec.job_facts().end(),
                     [&](const v1::KeyValue& fact) {
                       return FormatFact(fact) == job || (IsNameOfJob(fact) && fact.value() == job);
                     });
}

bool IsOfEveryJob(const v1::CaptureSpec& spec) { return FormatSelection(spec).empty(); }

}  // namespace neurontrace::cli
