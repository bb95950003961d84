// SPDX-License-Identifier: Apache-2.0
#include "simulate/golden.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <system_error>

#include "lib/base/json_writer.h"

namespace neurontrace {
namespace {

constexpr VerdictKind kLastKind = VerdictKind::kDeviceError;

std::optional<VerdictKind> KindNamed(std::string_view name) {
  for (uint8_t number = 1; number <= static_cast<uint8_t>(kLastKind); ++number) {
    if (name == VerdictKindName(static_cast<VerdictKind>(number)))
      return static_cast<VerdictKind>(number);
  }
  return std::nullopt;
}

class NullSink final : public FleetSink {
 public:
  void Take(std::span<const FleetEvent>) override {}
};

// What one run of a plan did to its ranks.
struct RunResult {
  std::vector<uint64_t> waits;  // by rank; of what is stuck up to the end
  std::vector<uint64_t> step_begins_ns;
  uint64_t end_ns = 0;
  uint64_t last_step_end_ns = 0;
};

RunResult RunPlan(const FleetPlan& plan) {
  FleetModel model(plan);
  NullSink sink;
  RunResult result;
  do {
    result.step_begins_ns.push_back(model.true_ns());
  } while (model.RunStep(sink));
  result.last_step_end_ns = model.true_ns();
  model.Finish(sink);
  result.end_ns = model.true_ns();
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    uint64_t wait_ns = model.wait_ns(rank);
    if (const auto stuck_ns = model.stuck_since_ns(rank)) wait_ns += result.end_ns - *stuck_ns;
    result.waits.push_back(wait_ns);
  }
  return result;
}

// Fills in what the fault changed between a run with it and one without it.
void Compare(const FleetPlan& plan, const PlannedFault& fault, const RunResult& with,
             const RunResult& without, GoldenFault& golden) {
  const size_t begin = plan.StepAt(fault.begin);
  const size_t end = plan.StepAt(fault.end);
  golden.begin_ns = with.step_begins_ns[std::min(begin, with.step_begins_ns.size() - 1)];
  const bool reaches_end = StopsFleet(fault.kind) || end >= with.step_begins_ns.size();
  golden.end_ns = reaches_end ? with.end_ns : with.step_begins_ns[end];
  const std::vector<uint32_t> guilty = GuiltyRanks(plan, fault);
  // A wait is longer because of the fault if it grew by one percent of a step or more.
  const uint64_t least_ns = plan.step_ns / 100;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (std::binary_search(guilty.begin(), guilty.end(), rank)) continue;
    if (with.waits[rank] < without.waits[rank] + least_ns) continue;
    golden.victims.push_back(rank);
    golden.wait_ns += with.waits[rank] - without.waits[rank];
  }
  const bool stops = with.step_begins_ns.size() != without.step_begins_ns.size();
  if (stops || StopsFleet(fault.kind) || end <= begin) return;
  if (with.last_step_end_ns > without.last_step_end_ns)
    golden.cost_ns = (with.last_step_end_ns - without.last_step_end_ns) / (end - begin);
}

std::vector<std::string> ReasonsOf(HoleKind kind) {
  switch (kind) {
    case HoleKind::kLosses:
    case HoleKind::kUnknownLosses:
      return {"losses", "too-short"};
    case HoleKind::kMissing:
      return {"coverage", "few-peers"};
    case HoleKind::kLateAgent:
      return {"no-canary", "coverage", "losses", "too-short"};
    case HoleKind::kWrongIds:
      return {"contradiction", "role-unknown"};
  }
  return {};
}

void WriteRanks(JsonWriter& json, std::string_view key, const std::vector<uint32_t>& ranks) {
  json.Key(key).Open('[');
  for (const uint32_t rank : ranks) json.Value(rank);
  json.Close(']');
}

// 2^53 is below the times: they are texts, as in protobuf's JSON.
void WriteTime(JsonWriter& json, std::string_view key, uint64_t value) {
  json.Member(key, fmt::format("{}", value));
}

// Reads members of an object and remembers the first that is missing or has the wrong type.
class MemberReader {
 public:
  explicit MemberReader(std::string_view place) : place_(place) {}

  template <typename Number>
  void Read(simdjson::dom::element object, const char* key, Number& value) {
    uint64_t number = 0;
    if (object[key].get(number) != simdjson::SUCCESS ||
        number > std::numeric_limits<Number>::max()) {
      Fail(key);
      return;
    }
    value = static_cast<Number>(number);
  }
  void Read(simdjson::dom::element object, const char* key, int64_t& value) {
    if (object[key].get(value) != simdjson::SUCCESS) Fail(key);
  }
  void Read(simdjson::dom::element object, const char* key, double& value) {
    if (object[key].get(value) != simdjson::SUCCESS) Fail(key);
  }
  void Read(simdjson::dom::element object, const char* key, std::string& value) {
    std::string_view text;
    if (object[key].get(text) != simdjson::SUCCESS) Fail(key);
    value = text;
  }
  void ReadTime(simdjson::dom::element object, const char* key, uint64_t& value) {
    std::string text;
    Read(object, key, text);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) Fail(key);
  }
  void Read(simdjson::dom::element object, const char* key, std::vector<uint32_t>& ranks) {
    simdjson::dom::array array;
    if (object[key].get(array) != simdjson::SUCCESS) return Fail(key);
    for (const simdjson::dom::element element : array) {
      uint64_t rank = 0;
      if (element.get(rank) != simdjson::SUCCESS || rank >= FleetPlan::kRanksMax) return Fail(key);
      ranks.push_back(static_cast<uint32_t>(rank));
    }
    if (!std::is_sorted(ranks.begin(), ranks.end())) Fail(key);
  }
  void Read(simdjson::dom::element object, const char* key, std::vector<std::string>& texts) {
    simdjson::dom::array array;
    if (object[key].get(array) != simdjson::SUCCESS) return Fail(key);
    for (const simdjson::dom::element element : array) {
      std::string_view text;
      if (element.get(text) != simdjson::SUCCESS) return Fail(key);
      texts.emplace_back(text);
    }
  }
  void Fail(std::string_view key) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(
          fmt::format("{}: '{}' is missing or has a wrong value", place_, key));
  }
  const absl::Status& status() const { return status_; }

 private:
  const std::string_view place_;
  absl::Status status_;
};

absl::Status ReadFaults(simdjson::dom::element document, std::vector<GoldenFault>& faults) {
  MemberReader reader("golden, faults");
  simdjson::dom::array array;
  if (document["faults"].get(array) != simdjson::SUCCESS) reader.Fail("faults");
  for (const simdjson::dom::element element : array) {
    GoldenFault& fault = faults.emplace_back();
    std::string kind;
    reader.Read(element, "kind", kind);
    const auto known = KindNamed(kind);
    if (!known) reader.Fail("kind");
    fault.kind = known.value_or(VerdictKind::kSlowCore);
    reader.Read(element, "ranks", fault.ranks);
    reader.Read(element, "phase", fault.phase);
    reader.Read(element, "stage", fault.stage);
    reader.Read(element, "group", fault.group);
    reader.Read(element, "magnitude", fault.magnitude);
    reader.ReadTime(element, "begin_ns", fault.begin_ns);
    reader.ReadTime(element, "end_ns", fault.end_ns);
    reader.Read(element, "victims", fault.victims);
    reader.ReadTime(element, "wait_ns", fault.wait_ns);
    reader.ReadTime(element, "cost_ns", fault.cost_ns);
    if (!reader.status().ok()) break;
  }
  return reader.status();
}

absl::Status ReadHoles(simdjson::dom::element document, std::vector<GoldenHole>& holes) {
  MemberReader reader("golden, holes");
  simdjson::dom::array array;
  if (document["holes"].get(array) != simdjson::SUCCESS) reader.Fail("holes");
  for (const simdjson::dom::element element : array) {
    GoldenHole& hole = holes.emplace_back();
    reader.Read(element, "kind", hole.kind);
    reader.Read(element, "ranks", hole.ranks);
    reader.Read(element, "reasons", hole.reasons);
    if (!reader.status().ok()) break;
  }
  return reader.status();
}

}  // namespace

Golden PlannedGolden(const FleetPlan& plan) {
  Golden golden{.dp = plan.dp,
                .pp = plan.pp,
                .tp = plan.tp,
                .cores_per_process = plan.cores_per_process,
                .processes_per_instance = plan.processes_per_instance,
                .seed = plan.seed,
                .steps = plan.steps,
                .begin_ns = plan.start_ns,
                .end_ns = plan.start_ns};
  std::vector<bool> is_missing(plan.ranks());
  for (const PlannedHole& hole : plan.holes) {
    golden.holes.push_back({HoleKindName(hole.kind), hole.ranks, ReasonsOf(hole.kind)});
    if (hole.kind != HoleKind::kMissing) continue;
    for (const uint32_t rank : hole.ranks) is_missing[rank] = true;
  }
  for (const PlannedFault& planned : plan.faults) {
    GoldenFault fault;
    fault.kind = planned.kind;
    fault.ranks = GuiltyRanks(plan, planned);
    std::erase_if(fault.ranks, [&](uint32_t rank) { return is_missing[rank]; });
    fault.phase = GuiltyPhase(planned.kind);
    if (planned.kind == VerdictKind::kUnevenRole) fault.stage = planned.target;
    const bool meets =
        planned.kind == VerdictKind::kSlowCollective || planned.kind == VerdictKind::kHangInside;
    if (meets) fault.group = DataGroup(plan, planned.target / plan.tp, planned.target % plan.tp);
    fault.magnitude = planned.magnitude;
    golden.faults.push_back(std::move(fault));
  }
  // Stages of unequal weight are uneven roles that nobody planned as a fault.
  if (!plan.stage_weights.empty()) {
    const auto heaviest = std::max_element(plan.stage_weights.begin(), plan.stage_weights.end());
    const auto lightest = std::min_element(plan.stage_weights.begin(), plan.stage_weights.end());
    const auto stage = static_cast<uint32_t>(heaviest - plan.stage_weights.begin());
    if (*heaviest > *lightest) {
      const PlannedFault planned{VerdictKind::kUnevenRole, *heaviest / *lightest - 1, stage};
      golden.faults.push_back({.kind = planned.kind,
                               .ranks = GuiltyRanks(plan, planned),
                               .phase = "device",
                               .stage = stage,
                               .magnitude = planned.magnitude});
    }
  }
  if (plan.data_spread > 0)
    golden.faults.push_back({.kind = VerdictKind::kUnevenData, .magnitude = plan.data_spread});
  return golden;
}

Golden MeasuredGolden(const FleetPlan& plan) {
  Golden golden = PlannedGolden(plan);
  const RunResult with = RunPlan(plan);
  golden.end_ns = with.end_ns;
  for (GoldenFault& fault : golden.faults) {
    fault.begin_ns = golden.begin_ns;
    fault.end_ns = golden.end_ns;
  }
  for (size_t i = 0; i < plan.faults.size(); ++i) {
    FleetPlan other = plan;
    other.faults.erase(other.faults.begin() + static_cast<ptrdiff_t>(i));
    Compare(plan, plan.faults[i], with, RunPlan(other), golden.faults[i]);
  }
  return golden;
}

std::string GoldenToJson(const Golden& golden) {
  JsonWriter json(JsonWriter::Style::kSpaced);
  json.Open('{').Space("\n").Member("version", Golden::kVersion);
  json.Space("\n").Member("dp", golden.dp).Member("pp", golden.pp).Member("tp", golden.tp);
  json.Member("cores_per_process", golden.cores_per_process);
  json.Member("processes_per_instance", golden.processes_per_instance);
  json.Space("\n");
  WriteTime(json, "seed", golden.seed);
  json.Member("steps", golden.steps);
  WriteTime(json, "begin_ns", golden.begin_ns);
  WriteTime(json, "end_ns", golden.end_ns);
  json.Space("\n").Key("faults").Open('[');
  for (const GoldenFault& fault : golden.faults) {
    json.Space("\n ").Open('{').Member("kind", VerdictKindName(fault.kind));
    WriteRanks(json, "ranks", fault.ranks);
    json.Member("phase", fault.phase).Member("stage", fault.stage).Member("group", fault.group);
    json.Key("magnitude").Json(fmt::format("{}", fault.magnitude));
    WriteTime(json, "begin_ns", fault.begin_ns);
    WriteTime(json, "end_ns", fault.end_ns);
    WriteRanks(json, "victims", fault.victims);
    WriteTime(json, "wait_ns", fault.wait_ns);
    WriteTime(json, "cost_ns", fault.cost_ns);
    json.Close('}');
  }
  json.Close(']').Space("\n").Key("holes").Open('[');
  for (const GoldenHole& hole : golden.holes) {
    json.Space("\n ").Open('{').Member("kind", hole.kind);
    WriteRanks(json, "ranks", hole.ranks);
    json.Member("reasons", hole.reasons).Close('}');
  }
  json.Close(']').Space("\n").Close('}');
  return json.Take() + "\n";
}

absl::StatusOr<Golden> ParseGolden(std::string_view text) {
  simdjson::dom::parser parser(Golden::kBytesMax);
  simdjson::dom::element document;
  if (const auto error = parser.parse(text.data(), text.size()).get(document)) {
    return absl::InvalidArgumentError(
        fmt::format("golden: no JSON: {}", simdjson::error_message(error)));
  }
  MemberReader reader("golden");
  uint32_t version = 0;
  reader.Read(document, "version", version);
  if (reader.status().ok() && version != Golden::kVersion) {
    return absl::InvalidArgumentError(fmt::format(
        "golden: version {}; this program reads version {}", version, Golden::kVersion));
  }
  Golden golden;
  reader.Read(document, "dp", golden.dp);
  reader.Read(document, "pp", golden.pp);
  reader.Read(document, "tp", golden.tp);
  reader.Read(document, "cores_per_process", golden.cores_per_process);
  reader.Read(document, "processes_per_instance", golden.processes_per_instance);
  reader.ReadTime(document, "seed", golden.seed);
  reader.Read(document, "steps", golden.steps);
  reader.ReadTime(document, "begin_ns", golden.begin_ns);
  reader.ReadTime(document, "end_ns", golden.end_ns);
  if (!reader.status().ok()) return reader.status();
  if (auto status = ReadFaults(document, golden.faults); !status.ok()) return status;
  if (auto status = ReadHoles(document, golden.holes); !status.ok()) return status;
  return golden;
}

absl::Status WriteGolden(const std::string& path, const FleetPlan& plan) {
  std::ofstream file(path, std::ios::binary);
  file << GoldenToJson(MeasuredGolden(plan));
  file.close();
  if (!file) return absl::UnavailableError(fmt::format("{}: {}", path, std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace neurontrace
