// SPDX-License-Identifier: Apache-2.0
#include "validate/clock_domains.h"

namespace neurontrace {

uint32_t ClockDomains::Add() {
  const auto line = static_cast<uint32_t>(above_.size());
  above_.push_back({line, 0});
  return line;
}

ClockDomains::Place ClockDomains::Find(uint32_t line) {
  Place top = {line, 0};
  while (above_[top.line].line != top.line) {
    const Place& above = above_[top.line];
    top = {above.line, top.shift_ns + above.shift_ns};
  }
  // So that the way is short next time, whatever order they were joined in.
  uint64_t shift_ns = top.shift_ns;
  while (line != top.line) {
    const Place above = above_[line];
    above_[line] = {top.line, shift_ns};
    shift_ns -= above.shift_ns;
    line = above.line;
  }
  return top;
}

void ClockDomains::Join(uint32_t a, uint64_t a_ns, uint32_t b, uint64_t b_ns) {
  const Place top_a = Find(a);
  const Place top_b = Find(b);
  if (top_a.line == top_b.line) return;
  above_[top_b.line] = {top_a.line, a_ns + top_a.shift_ns - (b_ns + top_b.shift_ns)};
}

}  // namespace neurontrace
