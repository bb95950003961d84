// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_scan.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/limits.h"

// How it works: planes are walked through once and lines are skipped by their lengths, except for
// the first one, whose time is needed. So the events, which are nearly all of the file, are not
// read.
namespace neurontrace {
namespace {

// Fields that one call looks at.
constexpr int kScanFieldsPerCall = 512;
// Fields of one entry of a plane's maps, and of a line before its events.
constexpr uint32_t kScanFieldsPerMessage = 8'192;
// Stats and names that are kept of one plane. The planes that matter here have a few.
constexpr size_t kPlaneStatsMax = 256;

constexpr std::string_view kEnvironmentPlane = "Task Environment";
constexpr std::string_view kHostPlane = "/host:CPU";

}  // namespace

bool LooksLikeXSpace(std::string_view first_bytes, uint64_t size) {
  XSpaceInput input{
      .read = [first_bytes](uint64_t offset, char* out, size_t bytes) -> absl::StatusOr<size_t> {
        return first_bytes.copy(out, bytes, offset);
      },
      .size = first_bytes.size()};
  XSpaceWire wire(std::move(input));
  XSpaceWire::Field plane;
  // The plane itself is not in the first bytes: its end is judged by the file's size.
  if (!wire.Next(UINT64_MAX / 2, plane) || plane.number != xspace_field::kSpacePlanes) return false;
  if (!plane.has_length || plane.end > size) return false;
  XSpaceWire::Field first;
  // Writers sort by number: a plane begins with its id, a number, or its name.
  return wire.Next(plane.end, first) && first.number <= xspace_field::kPlaneName &&
         first.has_length == (first.number == xspace_field::kPlaneName);
}

uint64_t XSpaceFacts::first_time_ns() const {
  const uint64_t line_ns = first_line_ns.value_or(0);
  if (line_ns >= kWallClockMinNs) return line_ns;
  uint64_t sum = 0;
  return __builtin_add_overflow(start_ns.value_or(0), line_ns, &sum) ? line_ns : sum;
}

bool XSpaceFacts::has_own_time() const {
  return !start_ns && first_line_ns.value_or(0) < kWallClockMinNs;
}

struct XSpaceScan::Impl {
  explicit Impl(XSpaceInput input) : wire(std::move(input)) {}

  // Names and values of a plane's own stats, which may come in either order.
  struct Plane {
    uint64_t end = 0;
    std::string name;
    std::vector<XSpaceStat> stats;
    absl::flat_hash_map<int64_t, std::string> names;
  };

  // Completes the facts; an empty problem means that the file is whole.
  bool Finish(std::string problem) {
    facts.problem = std::move(problem);
    facts.complete = facts.problem.empty();
    return true;
  }

  // Reads a bounded number of fields. A damaged plane is skipped, a damaged space ends the scan.
  bool Step() {
    for (int i = 0; i < kScanFieldsPerCall; ++i) {
      if (!plane && wire.position() == wire.size()) return Finish("");
      wire.Allow(kScanFieldsPerMessage);
      if (plane ? StepPlane() : StepSpace()) continue;
      if (!wire.status().ok()) return Finish(std::string(wire.status().message()));
      if (!plane) {
        return Finish(fmt::format("the file is truncated or damaged at byte {}", wire.position()));
      }
      wire.Seek(plane->end);  // damage in it is reported when it is read
    }
    return false;
  }

  // Each reads one field, and returns false if it is damaged or cannot be read.
  bool StepSpace() {
    XSpaceWire::Field about;
    if (!wire.Next(wire.size(), about)) return false;
    if (about.number == xspace_field::kSpacePlanes && about.has_length) {
      plane = Plane();
      plane->end = about.end;
    } else if (about.has_length) {
      wire.Seek(about.end);
    }
    return true;
  }

  bool StepPlane() {
    if (wire.position() == plane->end) {
      HandlePlane();
      plane.reset();
      return true;
    }
    XSpaceWire::Field about;
    if (!wire.Next(plane->end, about)) return false;
    if (!about.has_length) return true;
    bool is_good = true;
    XSpaceMetadata entry;
    switch (about.number) {
      case xspace_field::kPlaneName:
        is_good = wire.Text(about, limits::kStringBytesMax, plane->name);
        break;
      case xspace_field::kPlaneLines:
        if (!facts.first_line_ns) is_good = InspectLine(about.end);
        break;
      case xspace_field::kPlaneStats:
        if (plane->stats.size() < kPlaneStatsMax) {
          is_good = ReadXSpaceStat(wire, about.end, plane->stats.emplace_back());
        }
        break;
      case xspace_field::kPlaneStatMetadata:
        // Those of a plane that has stats come first; of planes with events there are many more.
        if (plane->names.size() >= kPlaneStatsMax) break;
        is_good = ReadXSpaceMapEntry(wire, about.end, entry);
        if (is_good) plane->names[entry.id] = entry.name;
        break;
      default:
        break;
    }
    wire.Seek(about.end);
    return is_good;
  }

  // Reads the fields before the first event: protobuf's writers sort fields by number.
  bool InspectLine(uint64_t end) {
    XSpaceLine line;
    bool has_time = false;
    while (wire.position() < end) {
      XSpaceWire::Field about;
      if (!wire.Next(end, about)) return false;
      if (about.number == xspace_field::kLineEvents) break;
      has_time = has_time || about.number == xspace_field::kLineTimestampNs;
      if (!ReadXSpaceLineField(wire, about, line)) return false;
      if (about.has_length) wire.Seek(about.end);
    }
    if (line.timestamp_ns >= 0 && (has_time || wire.position() < end)) {
      facts.first_line_ns = static_cast<uint64_t>(line.timestamp_ns);
    }
    return true;
  }

  // Takes the facts from the stats of a plane that has been read to its end.
  void HandlePlane() {
    const bool is_environment = plane->name == kEnvironmentPlane;
    const bool is_host = plane->name == kHostPlane;
    for (const XSpaceStat& stat : plane->stats) {
      if (stat.type != ValueType::kUint) continue;
      const auto name = plane->names.find(stat.metadata_id);
      if (name == plane->names.end()) continue;
      if (is_environment && name->second == "profile_start_time" && stat.bits >= kWallClockMinNs) {
        facts.start_ns = stat.bits;
      }
      if (name->second == "process_id" && stat.bits > 0 && stat.bits <= INT32_MAX &&
          (is_host || !facts.process_id)) {
        facts.process_id = static_cast<uint32_t>(stat.bits);
      }
    }
  }

  XSpaceWire wire;
  XSpaceFacts facts;
  std::optional<Plane> plane;  // the one at hand
};

XSpaceScan::XSpaceScan(XSpaceInput input) : impl_(std::make_unique<Impl>(std::move(input))) {}
XSpaceScan::~XSpaceScan() = default;
XSpaceScan::XSpaceScan(XSpaceScan&&) noexcept = default;
XSpaceScan& XSpaceScan::operator=(XSpaceScan&&) noexcept = default;
bool XSpaceScan::Step() { return impl_->Step(); }
const XSpaceFacts& XSpaceScan::facts() const { return impl_->facts; }
absl::Status XSpaceScan::status() const { return impl_->wire.status(); }

}  // namespace neurontrace
