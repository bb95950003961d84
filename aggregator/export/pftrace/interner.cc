// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/interner.h"

#include <cassert>

#include <protozero/pbf_writer.hpp>

#include "absl/strings/string_view.h"
#include "aggregator/export/pftrace/perfetto_fields.h"

namespace neurontrace {
namespace interned = perfetto::interned;

uint32_t Interner::Category(std::string_view text) {
  return Intern(categories_, interned::kCategories, text);
}
uint32_t Interner::EventName(std::string_view text) {
  return Intern(event_names_, interned::kEventNames, text);
}
uint32_t Interner::AnnotationName(std::string_view text) {
  return Intern(annotation_names_, interned::kAnnotationNames, text);
}
uint32_t Interner::StringValue(std::string_view text) {
  return Intern(string_values_, interned::kStringValues, text);
}

// A known text costs one look-up and no allocation. The caller checks is_full: there is no limit
// here.
uint32_t Interner::Intern(Table& table, uint32_t field, std::string_view text) {
  const auto known = table.find(absl::string_view(text.data(), text.size()));
  if (known != table.end()) return known->second;
  // Each table counts by itself, as Perfetto keeps them apart by field.
  const auto iid = static_cast<uint32_t>(table.size() + 1);  // 0 is no number
  table.emplace(std::string(text), iid);
  ++texts_;
  assert(iid == table.size());
  text_bytes_ += text.size();
  protozero::pbf_writer data(pending_);
  protozero::pbf_writer entry(data, field);
  entry.add_uint64(interned::kIid, iid);
  entry.add_bytes(interned::kText, text.data(), text.size());
  return iid;
}

// Also drops pending texts, so that no event that uses their numbers may follow.
void Interner::Reset() {
  categories_.clear();
  event_names_.clear();
  annotation_names_.clear();
  string_values_.clear();
  pending_.clear();
  texts_ = 0;
  text_bytes_ = 0;
  ++generation_;
}

}  // namespace neurontrace
