// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/fake_nrt/fake_nrt.h"

// One event type in one phase: everything of an event's JSON that is the same each time, rendered
// once. Opaque to the workload.
struct fake_nrt_form {
  struct Field {
    std::string key;  // "model_id": with its comma and the quotes that belong to the value's kind
    fake_nrt_kind kind;
  };
  uint16_t type = 0;
  std::string head;  // {"event_type":"…","phase":"…","id":
  std::vector<Field> fields;
  size_t fixed_bytes = 0;  // upper bound of the JSON of one event without its texts
};

namespace neurontrace {

// Upper bound of the event types of a process, listed ones and others.
inline constexpr size_t kEventTypesMax = 256;

// The forms, event types and texts of a process: all of them live as long as the process, so that a
// ring keeps plain pointers. Any thread may call.
class FormTable {
 public:
  // Knows the event types that the runtime lists, in the order of its table.
  FormTable();

  // Returns nullptr past FAKE_NRT_VALUES_MAX fields or kEventTypesMax event types.
  const fake_nrt_form* Define(std::string_view event_type, std::string_view phase,
                              const fake_nrt_field* fields, size_t count);
  // A text escaped as JSON wants it, or taken as it is; the value is a `const std::string*`.
  uint64_t InternEscaped(std::string_view utf8);
  uint64_t InternRaw(std::string_view json);

  // The event types that the runtime lists; a form's other types are not among them.
  const std::vector<std::string>& listed_types() const { return listed_types_; }
  // Index of a listed type, or -1.
  int FindListed(std::string_view event_type) const;

 private:
  std::vector<std::string> listed_types_;
  std::mutex mutex_;
  std::unordered_map<std::string, uint16_t> types_;               // guarded by mutex_
  std::unordered_map<std::string, const std::string*> interned_;  // guarded by mutex_
  std::deque<std::string> texts_;                                 // guarded by mutex_
  std::deque<fake_nrt_form> forms_;                               // guarded by mutex_
};

// Appends the characters between the quotes of a JSON string: control characters, quotes,
// backslashes and everything beyond ASCII escaped, so that a document is pure ASCII. Bytes that are
// no UTF-8 become U+FFFD.
void AppendEscaped(std::string& out, std::string_view utf8);

}  // namespace neurontrace
