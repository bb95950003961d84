// SPDX-License-Identifier: Apache-2.0
#include "validate/event_reader.h"

#include <cmath>
#include <protozero/pbf_reader.hpp>

#include "validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

ReadLegacyEvent ReadLegacy(std::string_view bytes) {
  namespace legacy = perfetto_read::legacy;
  ReadLegacyEvent out{.is_there = true};
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case legacy::kNameIid:
        out.name_iid = fields.get_uint64();
        break;
      case legacy::kPhase:
        out.phase = fields.get_uint64();
        break;
      case legacy::kDurationUs:
        out.duration_us = fields.get_int64();
        break;
      case legacy::kUnscopedId:
        out.id = fields.get_uint64();
        break;
      case legacy::kBindId:
        out.bind_id = fields.get_uint64();
        break;
      case legacy::kBindToEnclosing:
        out.binds_enclosing = fields.get_uint64() != 0;
        break;
      case legacy::kFlowDirection:
        out.direction = fields.get_uint64();
        break;
      case legacy::kInstantScope: {
        const uint64_t scope = fields.get_uint64();
        out.is_of_thread = scope != legacy::kScopeGlobal && scope != legacy::kScopeProcess;
        break;
      }
      case legacy::kPidOverride:
      case legacy::kTidOverride:
        out.has_process = true;
        fields.skip();
        break;
      default:
        fields.skip();
    }
  }
  return out;
}

// The fields of an event that are rare; false: none of them.
bool ReadRareField(protozero::pbf_reader& fields, ReadEvent& out) {
  switch (fields.tag_and_type()) {
    case perfetto_read::event::kLegacy:
      out.legacy = ReadLegacy(perfetto_read::TextOf(fields.get_view()));
      return true;
    case perfetto_read::event::kTimestampDeltaUs:
    case perfetto_read::event::kTimestampAbsoluteUs:
      out.has_own_time = true;
      return false;
    case perfetto_read::event::kCategory:
      out.categories.push_back(perfetto_read::TextOf(fields.get_view()));
      return true;
    case perfetto_read::event::kName:
      out.name = perfetto_read::TextOf(fields.get_view());
      return true;
    case perfetto_read::event::kExtraCounterValue:
      ++out.extra_values;
      return false;
    case perfetto_read::event::kExtraCounterUuid:
      out.extra_uuids.push_back(fields.get_uint64());
      return true;
    case perfetto_read::event::kExtraDoubleCounterValue:
      ++out.extra_double_values;
      return false;
    case perfetto_read::event::kExtraDoubleCounterUuid:
      out.extra_double_uuids.push_back(fields.get_uint64());
      return true;
    default:
      if (fields.tag() >= perfetto_read::event::kExtensionFirst &&
          fields.tag() <= perfetto_read::event::kExtensionLast && out.extension == 0) {
        out.extension = fields.tag();
      }
      return false;
  }
}

void Clear(ReadEvent& out) {
  out.type = 0;
  out.legacy = {};
  out.has_own_time = false;
  out.track_uuid.reset();
  out.name_iid = 0;
  out.name = {};
  out.category_iids.clear();
  out.categories.clear();
  out.annotations.clear();
  out.flows.clear();
  out.terminating_flows.clear();
  out.has_counter_value = false;
  out.is_counter_finite = true;
  out.extra_values = 0;
  out.extra_uuids.clear();
  out.extra_double_values = 0;
  out.extra_double_uuids.clear();
  out.extension = 0;
}

}  // namespace

void ReadTrackEvent(std::string_view bytes, ReadEvent& out) {
  Clear(out);
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case perfetto_read::event::kType:
        out.type = fields.get_uint64();
        break;
      case perfetto_read::event::kTrackUuid:
        out.track_uuid = fields.get_uint64();
        break;
      case perfetto_read::event::kNameIid:
        out.name_iid = fields.get_uint64();
        break;
      case perfetto_read::event::kCategoryIid:
        out.category_iids.push_back(fields.get_uint64());
        break;
      case perfetto_read::event::kAnnotation:
        out.annotations.push_back(perfetto_read::TextOf(fields.get_view()));
        break;
      case perfetto_read::event::kFlowId:
        out.flows.push_back(fields.get_fixed64());
        break;
      case perfetto_read::event::kTerminatingFlowId:
        out.terminating_flows.push_back(fields.get_fixed64());
        break;
      case perfetto_read::event::kCounterValue:
        out.has_counter_value = true;
        fields.skip();
        break;
      case perfetto_read::event::kDoubleCounterValue:
        out.has_counter_value = true;
        out.is_counter_finite = std::isfinite(fields.get_double());
        break;
      default:
        if (!ReadRareField(fields, out)) fields.skip();
    }
  }
  if (out.name_iid == 0) out.name_iid = out.legacy.name_iid;
}

ReadAnnotation ReadDebugAnnotation(std::string_view bytes) {
  namespace annotation = perfetto_read::annotation;
  ReadAnnotation out;
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case annotation::kNameIid:
        out.name_iid = fields.get_uint64();
        break;
      case annotation::kName:
        out.name = perfetto_read::TextOf(fields.get_view());
        break;
      case annotation::kBoolValue:
      case annotation::kUintValue:
      case annotation::kIntValue:
        out.number = fields.get_uint64();
        break;
      case annotation::kStringValueIid:
        out.string_iid = fields.get_uint64();
        break;
      default:
        fields.skip();
    }
  }
  return out;
}

}  // namespace neurontrace
