// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/event_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), LowerCase);
  return lower;
}

// Returns whether `text` has the part, whose letters are in lower case.
bool HasPart(std::string_view text, std::string_view part) {
  return !std::ranges::search(text, part, {}, LowerCase).empty() || part.empty();
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses "10ms", "1.5us" or "300" (ns).
std::optional<uint64_t> ParseLength(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      std::pair{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"µs", 1e3}, {"min", 60e9}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit(end, text.data() + text.size() - end);
  double factor = unit.empty() ? 1.0 : 0.0;
  for (const auto& [name, ns] : kUnits) {
    if (unit == name) factor = ns;
  }
  const double length = number * factor;
  if (factor == 0 || length >= 9e18) return std::nullopt;
  return static_cast<uint64_t>(length);
}

}  // namespace

absl::StatusOr<EventQuery::Term> EventQuery::ParseTerm(std::string_view text, bool is_quoted) {
  Term term;
  if (!is_quoted && text.size() > 1 && text.front() == '-') {
    term.is_negated = true;
    text.remove_prefix(1);
  }
  const auto prefixed = [&](std::string_view prefix) {
    if (is_quoted || !text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
  };
  const std::string_view whole = text;
  if (prefixed("dur")) {
    const bool is_longer = text.starts_with('>');
    if (!is_longer && !text.starts_with('<'))
      return Term{.is_negated = term.is_negated, .text = InLowerCase(whole)};
    text.remove_prefix(text.substr(1).starts_with('=') ? 2 : 1);
    const std::optional<uint64_t> length = ParseLength(text);
    if (!length)
      return InvalidArgument("search: '{}' is not a length; write for example dur>10ms", whole);
    term.kind = is_longer ? Kind::kLonger : Kind::kShorter;
    term.first = *length;
    return term;
  }
  if (prefixed("rank:") || prefixed("core:")) {
    term.kind = whole.starts_with("rank:") ? Kind::kRank : Kind::kCore;
    const size_t dash = text.find('-');
    const std::optional<uint64_t> first = ParseNumber(text.substr(0, dash));
    const std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : ParseNumber(text.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return InvalidArgument("search: '{}' is not a number or range; write for example rank:8-15",
                             whole);
    }
    term.first = *first;
    term.last = *last;
    return term;
  }
  if (prefixed("arg:")) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return InvalidArgument("search: '{}' has no value; write for example arg:model=resnet",
                             whole);
    }
    term.kind = Kind::kArgument;
    term.text = text.substr(0, equals);
    term.value = text.substr(equals + 1);
    return term;
  }
  term.kind = prefixed("name:")   ? Kind::kName
              : prefixed("type:") ? Kind::kType
              : prefixed("cat:")  ? Kind::kCategory
                                  : Kind::kText;
  term.text = term.kind == Kind::kText ? InLowerCase(text) : std::string(text);
  return term;
}

absl::StatusOr<EventQuery> EventQuery::Parse(std::string_view text) {
  if (text.size() > limits::kViewQueryBytesMax) {
    return InvalidArgument("search: {} bytes are too long; at most {} are accepted", text.size(),
                           limits::kViewQueryBytesMax);
  }
  EventQuery query;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ' || text[at] == '\t') {
      ++at;
      continue;
    }
    // A term ends at a blank outside quotation marks, which may begin in its middle: name:"a b".
    const bool is_quoted = text[at] == '"';
    std::string word;
    bool is_inside = false;
    const size_t begin = at;
    for (; at < text.size() && (is_inside || (text[at] != ' ' && text[at] != '\t')); ++at) {
      if (text[at] == '"') {
        is_inside = !is_inside;
      } else {
        word += text[at];
      }
    }
    if (is_inside) {
      return InvalidArgument("search: a closing quotation mark is missing after '{}'",
                             text.substr(begin));
    }
    ASSIGN_OR_RETURN(Term term, ParseTerm(word, is_quoted));
    query.needs_arguments_ |= term.kind == Kind::kText || term.kind == Kind::kArgument;
    query.terms_.push_back(std::move(term));
  }
  return query;
}

bool EventQuery::HoldsAtPlace(const Term& term, const Place& place) {
  const auto is_in_range = [&term](const auto& number) {
    return number && *number >= 0 && static_cast<uint64_t>(*number) >= term.first &&
           static_cast<uint64_t>(*number) <= term.last;
  };
  if (term.kind == Kind::kRank) return is_in_range(place.worker_gid) != term.is_negated;
  if (term.kind != Kind::kCore) return true;
  return (place.core && *place.core >= term.first && *place.core <= term.last) != term.is_negated;
}

bool EventQuery::CanMatchAt(const Place& place) const {
  return std::ranges::all_of(terms_, [&](const Term& term) { return HoldsAtPlace(term, place); });
}

bool EventQuery::depends_on_names_only() const {
  return std::ranges::none_of(terms_, [](const Term& term) {
    return term.kind == Kind::kText || term.kind == Kind::kArgument || term.kind == Kind::kLonger ||
           term.kind == Kind::kShorter;
  });
}

bool EventQuery::HoldsForEvent(const Term& term, const Event& event) {
  const auto holds = [&term](bool value) { return value != term.is_negated; };
  switch (term.kind) {
    case Kind::kName:
      return holds(event.name == term.text);
    case Kind::kType:
      return holds(event.type == term.text);
    case Kind::kCategory:
      return holds(event.category == term.text);
    case Kind::kLonger:
      return holds(event.duration_ns >= term.first);
    case Kind::kShorter:
      return holds(event.duration_ns <= term.first);
    case Kind::kRank:
    case Kind::kCore:
      return HoldsAtPlace(term, event.place);
    case Kind::kText:
    case Kind::kArgument:
      break;
  }
  return true;
}

bool EventQuery::MatchesWithoutArguments(const Event& event) const {
  return std::ranges::all_of(terms_, [&](const Term& term) { return HoldsForEvent(term, event); });
}

bool EventQuery::MatchesArguments(
    const Event& event, const std::vector<std::pair<std::string, std::string>>& texts) const {
  for (const Term& term : terms_) {
    bool holds = true;
    if (term.kind == Kind::kText) {
      holds = HasPart(event.name, term.text) || std::ranges::any_of(texts, [&](const auto& text) {
                return HasPart(text.second, term.text);
              });
    } else if (term.kind == Kind::kArgument) {
      holds = std::ranges::any_of(texts, [&](const auto& text) {
        return text.first == term.text && text.second == term.value;
      });
    } else {
      continue;
    }
    if (holds == term.is_negated) return false;
  }
  return true;
}

}  // namespace neurontrace
