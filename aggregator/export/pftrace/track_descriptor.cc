// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/track_descriptor.h"

#include <protozero/pbf_writer.hpp>

#include "aggregator/export/pftrace/perfetto_fields.h"

namespace neurontrace {
namespace {

namespace descriptor = perfetto::descriptor;

std::string SerializeCounter(TrackUnit unit, std::string_view axis) {
  std::string counter;
  protozero::pbf_writer about(counter);
  switch (unit) {
    case TrackUnit::kNs:
      about.add_enum(descriptor::kCounterUnit, descriptor::kCounterUnitNs);
      break;
    case TrackUnit::kBytes:
      about.add_enum(descriptor::kCounterUnit, descriptor::kCounterUnitBytes);
      break;
    case TrackUnit::kBytesPerSecond:
      about.add_string(descriptor::kCounterUnitName, "B/s");
      break;
    case TrackUnit::kPercent:
      about.add_string(descriptor::kCounterUnitName, "%");
      break;
    case TrackUnit::kNone:
    case TrackUnit::kNoCounter:
      break;
  }
  if (!axis.empty()) about.add_string(descriptor::kCounterAxis, axis.data(), axis.size());
  return counter;
}

}  // namespace

std::string SerializeTrack(uint32_t uuid, const ChildTrack& track) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, uuid);
  writer.add_string(descriptor::kName, track.name);
  if (track.parent_uuid != 0) writer.add_uint64(descriptor::kParentUuid, track.parent_uuid);
  if (track.orders_children)
    writer.add_enum(descriptor::kChildOrdering, descriptor::kChildrenByRank);
  if (track.rank != 0) writer.add_int32(descriptor::kSiblingOrderRank, track.rank);
  writer.add_enum(descriptor::kSiblingMergeBehavior, descriptor::kMergeNone);
  if (!track.description.empty()) {
    writer.add_string(descriptor::kDescription, track.description.data(), track.description.size());
  }
  // Also where it says nothing more.
  if (track.unit != TrackUnit::kNoCounter) {
    writer.add_message(descriptor::kCounter, SerializeCounter(track.unit, track.axis));
  }
  return body;
}

}  // namespace neurontrace
