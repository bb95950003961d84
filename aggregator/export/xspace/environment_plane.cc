// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/xspace/environment_plane.h"

#include <protozero/pbf_writer.hpp>

#include "aggregator/export/xspace/plane_buffer.h"
#include "aggregator/export/xspace/xspace_fields.h"

namespace neurontrace {

void AppendEnvironmentPlane(uint64_t begin_ns, uint64_t end_ns, std::string_view verdict,
                            int64_t id, std::string& out) {
  PlaneBuffer plane(id, "Task Environment");
  plane.AddPlaneStat({"profile_start_time", ValueType::kUint, begin_ns, {}});
  plane.AddPlaneStat({"profile_stop_time", ValueType::kUint, end_ns, {}});
  if (!verdict.empty()) plane.AddPlaneStat({"verdict", ValueType::kString, 0, verdict});
  protozero::pbf_writer(out).add_message(xspace::space::kPlanes, plane.TakeBytes());
}

}  // namespace neurontrace
