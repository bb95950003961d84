// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace neurontrace {

// An XSpace as the field numbers of xplane.proto say it, with names instead of numbers. Plain
// values.
struct XEvent {
  std::string name;
  int64_t start_ns = 0;  // since the origin
  int64_t duration_ns = 0;
  std::map<std::string, std::string> stats;  // as texts
};
struct XPlane {
  int64_t id = 0;
  std::string name;
  // By name; the second and further ones of one name, as physical cores of one thread have it, by
  // "NAME #ID".
  std::map<std::string, std::vector<XEvent>> lines;
  std::map<std::string, std::string> stats;
};
struct XSpace {
  std::vector<XPlane> planes;
  std::vector<std::string> warnings;
  std::vector<std::string> hostnames;
};

// With protozero; a test failure for a field that is not known, a number of nothing, or a stat that
// an event has twice.
XSpace ReadSpace(const std::string& bytes);

}  // namespace neurontrace
