// SPDX-License-Identifier: Apache-2.0
#include "tests/export/xspace_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <protozero/pbf_reader.hpp>

namespace neurontrace {
namespace {

using XNames = std::map<int64_t, std::string>;

XNames::value_type ReadEntry(protozero::pbf_reader entry) {
  int64_t key = 0;
  std::string name;
  while (entry.next()) {
    if (entry.tag() == 1) {
      key = entry.get_int64();
    } else if (entry.tag() == 2) {
      protozero::pbf_reader value = entry.get_message();
      while (value.next()) {
        if (value.tag() == 2) {
          name = value.get_string();
        } else {
          value.skip();
        }
      }
    } else {
      entry.skip();
    }
  }
  return {key, name};
}

void ReadStat(protozero::pbf_reader stat, const XNames& names,
              std::map<std::string, std::string>& stats) {
  std::string name;
  std::string value;
  while (stat.next()) {
    switch (stat.tag()) {
      case 1:
        name = names.at(stat.get_int64());
        break;
      case 2:
        value = fmt::format("{}", stat.get_double());
        break;
      case 3:
        value = fmt::format("{}", stat.get_uint64());
        break;
      case 4:
        value = fmt::format("{}", stat.get_int64());
        break;
      case 5:
        value = stat.get_string();
        break;
      case 7:
        value = names.at(static_cast<int64_t>(stat.get_uint64()));
        break;
      default:
        ADD_FAILURE() << "field " << stat.tag();
        stat.skip();
    }
  }
  EXPECT_TRUE(stats.emplace(name, value).second) << "twice: " << name;
}

XEvent ReadEvent(protozero::pbf_reader event, int64_t line_ns, const XNames& events,
                 const XNames& stats) {
  XEvent found;
  while (event.next()) {
    switch (event.tag()) {
      case 1:
        found.name = events.at(event.get_int64());
        break;
      case 2:
        found.start_ns = line_ns + event.get_int64() / 1'000;
        break;
      case 3:
        found.duration_ns = event.get_int64() / 1'000;
        break;
      case 4:
        ReadStat(event.get_message(), stats, found.stats);
        break;
      default:
        ADD_FAILURE() << "field " << event.tag();
        event.skip();
    }
  }
  return found;
}

XPlane ReadPlane(const protozero::data_view& bytes) {
  XPlane plane;
  XNames events;
  XNames stats;
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    if (reader.tag() == 4) {
      events.insert(ReadEntry(reader.get_message()));
    } else if (reader.tag() == 5) {
      stats.insert(ReadEntry(reader.get_message()));
    } else {
      reader.skip();
    }
  }
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    switch (reader.tag()) {
      case 1:
        plane.id = reader.get_int64();
        break;
      case 2:
        plane.name = reader.get_string();
        break;
      case 3: {
        const protozero::data_view line = reader.get_view();
        std::string name;
        int64_t line_ns = 0;
        int64_t id = 0;
        for (protozero::pbf_reader about(line); about.next();) {
          if (about.tag() == 1) {
            id = about.get_int64();
          } else if (about.tag() == 2) {
            name = about.get_string();
          } else if (about.tag() == 3) {
            line_ns = about.get_int64();
          } else {
            about.skip();
          }
        }
        if (plane.lines.contains(name)) name += " #" + std::to_string(id);
        for (protozero::pbf_reader about(line); about.next();) {
          if (about.tag() == 4) {
            plane.lines[name].push_back(ReadEvent(about.get_message(), line_ns, events, stats));
          } else {
            about.skip();
          }
        }
        break;
      }
      case 6:
        ReadStat(reader.get_message(), stats, plane.stats);
        break;
      default:
        reader.skip();
    }
  }
  return plane;
}

}  // namespace

XSpace ReadSpace(const std::string& bytes) {
  XSpace space;
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    if (reader.tag() == 1) {
      space.planes.push_back(ReadPlane(reader.get_view()));
    } else if (reader.tag() == 3) {
      space.warnings.push_back(reader.get_string());
    } else if (reader.tag() == 4) {
      space.hostnames.push_back(reader.get_string());
    } else {
      ADD_FAILURE() << "field " << reader.tag();
      reader.skip();
    }
  }
  return space;
}

}  // namespace neurontrace
