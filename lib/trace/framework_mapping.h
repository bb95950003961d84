// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace neurontrace {

// The mapping files that PyTorch for Neuron writes beside its traces: for which operations an
// nrta_seq_id was submitted (decision 0030). Agents store each entry of such a file as one metadata
// event of this type in the stream of the file. The entry's nrta_seq_id is in the field of that
// name. Three attributes in data scope are JSON arrays of integers and nulls ("[17,18]"), and the
// n-th items of the three belong together.
inline constexpr std::string_view kFrameworkMappingEventType = "neurontrace.framework_mapping";
inline constexpr std::string_view kMappingSequenceKey = "seq_nr";
inline constexpr std::string_view kMappingThreadKey = "th_id";
inline constexpr std::string_view kMappingStreamKey = "stream_id";

// Returns whether a file has the name framework_mapping_<digits and underscores>.json, with or
// without .gz. Folders of the path are ignored. Pure.
bool IsFrameworkMappingName(std::string_view path);

}  // namespace neurontrace
