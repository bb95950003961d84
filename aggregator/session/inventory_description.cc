// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/inventory_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace neurontrace {
namespace {

// A message names this many and counts the rest: a fleet has thousands.
constexpr size_t kNamedMax = 8;

std::string Plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kNamedMax) return text + fmt::format(" and {} more", names.size() - i);
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text;
}

// Returns a question for each name in the selection that is close to an existing one.
std::string MeantBy(const CaptureSpec& spec, const std::vector<std::string>& jobs,
                    const std::vector<std::string>& instances) {
  std::string text;
  const auto ask = [&](const std::string& name, const std::vector<std::string>& there_are) {
    const std::string nearest = NearestName(name, there_are);
    if (!nearest.empty() && nearest != name) text += fmt::format("; did you mean {}?", nearest);
  };
  if (!spec.selection.job.empty()) ask(spec.selection.job, jobs);
  // Each is compared with all instances, and a reader can use one or two answers.
  constexpr size_t kAskedMax = 4;
  for (size_t i = 0; i < std::min(spec.selection.instance_ids.size(), kAskedMax); ++i) {
    ask(spec.selection.instance_ids[i], instances);
  }
  return text;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the matrix: distances from the first i characters of `a` to each beginning of
  // `b`.
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string NearestName(std::string_view name, std::span<const std::string> names) {
  // The name comes from a request and may be of any length; actual names are shorter.
  constexpr size_t kComparedBytesMax = 64;
  if (name.size() > kComparedBytesMax) return "";
  std::string nearest;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1;
  for (const std::string& other : names) {
    // A name that is complete but for one end was probably shortened on purpose.
    const bool is_part = name.size() >= 4 && other.find(name) != std::string::npos;
    if (!is_part && other.size() > 2 * kComparedBytesMax) continue;  // cannot be near
    const size_t distance = is_part ? 1 : EditDistance(name, other);
    if (distance >= least) continue;
    least = distance;
    nearest = other;
  }
  return nearest;
}

// Builds one sentence from three parts: workers by job, instances, and guesses at misspelt names.
std::string DescribeInventory(const AgentRegistry& registry, const CaptureSpec& spec) {
  const size_t workers = registry.workers();
  if (registry.connected() == 0) return "no agent is connected";
  std::set<std::string> instances;
  struct Job {
    size_t workers = 0;
    std::set<std::string> instances;
    std::string example;
  };
  std::map<std::string, Job> jobs;
  for (const auto& [agent_id, agent] : registry.agents()) {
    if (agent.connection) instances.insert(agent.info.instance_id);
    for (const auto& [identity, worker] : agent.workers) {
      Job& job = jobs[worker.job];
      if (job.workers++ == 0) job.example = ToString(identity);
      job.instances.insert(identity.instance_id);
    }
  }
  const std::vector<std::string> instance_names(instances.begin(), instances.end());
  const std::string where =
      fmt::format("{}: {}", Plural(instances.size(), "instance"), Join(instance_names));
  std::vector<std::string> job_names;
  std::vector<std::string> lines;
  for (const auto& [name, job] : jobs) {
    if (!name.empty()) job_names.push_back(name);
    lines.push_back(fmt::format("{} of {} on {} ({})", Plural(job.workers, "worker"),
                                name.empty() ? "no known job" : "job " + name,
                                Plural(job.instances.size(), "instance"),
                                job.workers == 1 ? job.example : job.example + ", …"));
  }
  const std::string meant = MeantBy(spec, job_names, instance_names);
  if (workers == 0) {
    return fmt::format("{} connected and report{} no worker ({}){}",
                       registry.connected() == 1
                           ? "1 agent is"
                           : fmt::format("{} agents are", registry.connected()),
                       registry.connected() == 1 ? "s" : "", where, meant);
  }
  return fmt::format("there {}; {}{}", workers == 1 ? "is " + Join(lines) : "are " + Join(lines),
                     where, meant);
}

}  // namespace neurontrace
