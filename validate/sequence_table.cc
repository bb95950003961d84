// SPDX-License-Identifier: Apache-2.0
#include "validate/sequence_table.h"

#include <protozero/pbf_reader.hpp>

#include "base/clean_text.h"
#include "validate/limits.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {

TraceSequence* SequenceTable::Of(uint32_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) return &found->second;
  if (sequences_.size() >= validate_limits::kSequencesMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} sequences: further ones are not checked.",
             validate_limits::kSequencesMax);
    return nullptr;
  }
  return &sequences_[id];
}

void SequenceTable::Clear(TraceSequence& sequence) {
  texts_ -= sequence.texts();
  sequence = TraceSequence{.has_state = true, .was_cleared = true};
  ++summary_.sequence_headers;
}

void SequenceTable::TakeDefaults(std::string_view defaults, TraceSequence& sequence) {
  for (protozero::pbf_reader fields(defaults.data(), defaults.size()); fields.next();) {
    if (fields.tag_and_type() == perfetto_read::defaults::kTimestampClockId) {
      sequence.default_clock = fields.get_uint64();
    } else if (fields.tag_and_type() == perfetto_read::defaults::kTrackEvent) {
      for (protozero::pbf_reader about(fields.get_view()); about.next();) {
        switch (about.tag_and_type()) {
          case perfetto_read::event::kTrackUuid:
            sequence.default_track_uuid = about.get_uint64();
            break;
          case perfetto_read::event::kExtraCounterUuid:
            ++sequence.default_extra_uuids;
            about.skip();
            break;
          case perfetto_read::event::kExtraDoubleCounterUuid:
            ++sequence.default_extra_double_uuids;
            about.skip();
            break;
          default:
            about.skip();
        }
      }
    } else {
      fields.skip();
    }
  }
}

void SequenceTable::TakeText(std::string_view entry, TraceSequence& sequence, InternTable& table) {
  uint64_t iid = 0;
  std::string_view text;
  for (protozero::pbf_reader fields(entry.data(), entry.size()); fields.next();) {
    if (fields.tag_and_type() == perfetto_read::interned::kIid) {
      iid = fields.get_uint64();
    } else if (fields.tag_and_type() == perfetto_read::interned::kText) {
      text = perfetto_read::TextOf(fields.get_view());
    } else {
      fields.skip();
    }
  }
  if (iid == 0) {
    log_.Add(TraceCheck::kInterned, "The text '{}' is interned under number 0, which is none.",
             CleanText(text, validate_limits::kNameBytesMax));
    return;
  }
  if (texts_ >= validate_limits::kTextsMax) {
    log_.Add(TraceCheck::kLimit, "More than {} texts are interned: further ones are not followed.",
             validate_limits::kTextsMax);
    sequence.is_cut = true;
    return;
  }
  bool is_new = false;
  if (!table.Add(iid, text, is_new)) {
    log_.Add(TraceCheck::kInterned, "Number {} is interned as '{}' and then as '{}'.", iid,
             table.Find(iid)->beginning, CleanText(text, validate_limits::kNameBytesMax));
  }
  if (!is_new) return;
  ++texts_;
  ++summary_.interned_texts;
}

void SequenceTable::TakeInterned(std::string_view data, TraceSequence& sequence) {
  for (protozero::pbf_reader fields(data.data(), data.size()); fields.next();) {
    InternTable* table = nullptr;
    switch (fields.tag_and_type()) {
      case perfetto_read::interned::kCategories:
        table = &sequence.categories;
        break;
      case perfetto_read::interned::kEventNames:
        table = &sequence.event_names;
        break;
      case perfetto_read::interned::kAnnotationNames:
        table = &sequence.annotation_names;
        break;
      case perfetto_read::interned::kStringValues:
        table = &sequence.strings;
        break;
      default:
        break;
    }
    if (table == nullptr) {
      fields.skip();
    } else {
      TakeText(perfetto_read::TextOf(fields.get_view()), sequence, *table);
    }
  }
}

}  // namespace neurontrace
