// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/export/rows/event_attributes.h"

namespace neurontrace {

// A search of the page, such as `allreduce rank:8-15 dur>10ms -warmup`. An event is found if every
// term holds. Constant after Parse, so that any thread may use it.
//
//   word, "two words"    part of the name or of an argument's text; ASCII letters in either case
//   -word                no such part
//   name:x type:x cat:x  the whole name, runtime type or category
//   rank:13 rank:8-15    worker_gid of the event's stream
//   core:5               logical core of the event's stream
//   dur>10ms dur<5us     length; ns, us, ms, s; >= and <= are the same as > and <
//   arg:key=value        an argument with this name and text
class EventQuery {
 public:
  // What a term compares with, taken from the event's stream.
  struct Place {
    std::optional<int64_t> worker_gid;
    std::optional<uint32_t> core;
  };
  // An event as the query sees it.
  struct Event {
    std::string_view name;
    std::string_view type;
    std::string_view category;
    uint64_t duration_ns = 0;
    Place place;
  };

  // An empty text finds every event. Fails with INVALID_ARGUMENT that names the term and shows a
  // correct one.
  static absl::StatusOr<EventQuery> Parse(std::string_view text);

  bool is_empty() const { return terms_.empty(); }
  // Returns whether streams at this place may have events that are found: then none of the others
  // has to be read.
  bool CanMatchAt(const Place& place) const;
  // Returns whether the event is found without regard to terms that need its arguments.
  bool MatchesWithoutArguments(const Event& event) const;
  // Returns whether the terms that need arguments hold. Requires that MatchesWithoutArguments is
  // true for the event. `texts` are the names and texts of its arguments.
  bool MatchesArguments(const Event& event,
                        const std::vector<std::pair<std::string, std::string>>& texts) const;
  // Returns whether name, type, category and place of an event decide: then events of a name can be
  // counted without looking at each.
  bool depends_on_names_only() const;
  // Returns whether MatchesArguments depends on arguments at all.
  bool needs_arguments() const { return needs_arguments_; }

 private:
  enum class Kind : uint8_t {
    kText,
    kName,
    kType,
    kCategory,
    kRank,
    kCore,
    kLonger,
    kShorter,
    kArgument
  };
  struct Term {
    Kind kind = Kind::kText;
    bool is_negated = false;
    std::string text;    // in lower case for kText
    std::string value;   // of kArgument
    uint64_t first = 0;  // of a range, or the length
    uint64_t last = 0;
  };
  static absl::StatusOr<Term> ParseTerm(std::string_view text, bool is_quoted);
  static bool HoldsAtPlace(const Term& term, const Place& place);
  static bool HoldsForEvent(const Term& term, const Event& event);

  std::vector<Term> terms_;
  bool needs_arguments_ = false;
};

}  // namespace neurontrace
