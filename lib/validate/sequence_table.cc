// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/sequence_table.h"

#include "lib/base/clean_text.h"
#include "lib/validate/limits.h"
#include "lib/validate/perfetto_numbers.h"

namespace neurontrace {

uint64_t HashText(std::string_view text) {
  // The offset basis and prime of the 64-bit FNV-1a hash.
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  // 0 means that there is no text.
  return hash == 0 ? 1 : hash;
}

TraceSequence* SequenceTable::Of(uint32_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) return &found->second;
  if (sequences_.size() >= validate_limits::kSequencesMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} sequences; the others are not checked.",
             validate_limits::kSequencesMax);
    return nullptr;
  }
  return &sequences_[id];
}

// Perfetto does the same at SEQ_INCREMENTAL_STATE_CLEARED: nothing that the sequence has said
// before is valid any more.
void SequenceTable::Clear(TraceSequence& sequence) {
  texts_ -= sequence.texts.size();
  sequence = TraceSequence{.has_state = true, .was_cleared = true};
  ++summary_.sequence_headers;
}

void SequenceTable::ReadDefaults(std::string_view bytes, TraceSequence& sequence) {
  namespace event = perfetto_read::event;
  const TraceMessage defaults(bytes);
  sequence.default_clock =
      defaults.Number(perfetto_read::defaults::kTimestampClockId, sequence.default_clock);
  const TraceMessage of_events(defaults.Text(perfetto_read::defaults::kTrackEvent));
  // Defaults that are absent keep their value.
  if (const auto uuid = of_events.Number(event::kTrackUuid)) sequence.default_track_uuid = uuid;
  for (const TraceMessage::Field& field : of_events) {
    sequence.default_extra_uuids += field.tag == event::kExtraCounterUuid ? 1 : 0;
    sequence.default_extra_double_uuids += field.tag == event::kExtraDoubleCounterUuid ? 1 : 0;
  }
}

void SequenceTable::ReadInterned(std::string_view bytes, TraceSequence& sequence) {
  namespace interned = perfetto_read::interned;
  data_.Parse(bytes);
  for (const TraceMessage::Field& field : data_) {
    // Only texts to which checked fields refer are kept.
    if (field.tag != interned::kCategories && field.tag != interned::kEventNames &&
        field.tag != interned::kAnnotationNames && field.tag != interned::kStringValues) {
      continue;
    }
    entry_.Parse(field.text);
    const uint64_t iid = entry_.Number(interned::kIid, 0);
    const std::string_view text = entry_.Text(interned::kText);
    if (iid == 0) {
      log_.Add(TraceCheck::kInterned, "The text '{}' is interned under number 0, which is invalid.",
               CleanText(text, validate_limits::kNameBytesMax));
      continue;
    }
    const uint64_t hash = HashText(text);
    const auto known = sequence.texts.find({field.tag, iid});
    if (known != sequence.texts.end()) {
      // Repeating a text is allowed.
      if (known->second.hash == hash) continue;
      log_.Add(TraceCheck::kInterned, "Number {} is interned as '{}' and then as '{}'.", iid,
               known->second.beginning, CleanText(text, validate_limits::kNameBytesMax));
      continue;
    }
    // The limit is that of all sequences together, as a file may have many.
    if (texts_ >= validate_limits::kTextsMax) {
      log_.Add(TraceCheck::kLimit, "More than {} texts are interned; the others are not kept.",
               validate_limits::kTextsMax);
      // From now on a missing text is no finding.
      sequence.is_cut = true;
      continue;
    }
    sequence.texts.emplace(std::pair(field.tag, iid),
                           InternedText{hash, CleanText(text, validate_limits::kNameBytesMax)});
    ++texts_;
    ++summary_.interned_texts;
  }
}

}  // namespace neurontrace
